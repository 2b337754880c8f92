package domainxml

import "libvirt.org/go/libvirtxml"

// part is one aspect of a machine, with its conversion from a Machine to libvirt's domain and back.
type part struct {
	// name is the name of the attribute in the configuration.
	name string
	// single is true for a kind of device of which a Machine has at most one, whose element has that name.
	single bool
	// settings are attributes that libvirt also adds by default, or that have no element in the XML: only the metadata shows that they were
	// configured.
	settings []setting
	// apply writes the desired value into a domain, new or existing, and keeps elements that match already.
	apply func(*libvirtxml.Domain, Machine)
	// parse reads the value from a domain. The metadata contains what a domain can't express.
	parse func(*libvirtxml.Domain, machineMetadata, *Machine) error
	// same reports whether a running domain matches want in this aspect; nil if it is compared elsewhere.
	same func(live, want Machine) bool
	// drift records in a stored machine what was changed in the running domain only, outside of Terraform; nil if that is not
	// possible. Changes that wait for the next start are no drift.
	drift func(stored *Machine, live Machine)
}

// setting is an attribute, and whether a machine configures it.
type setting struct {
	name string
	is   func(Machine) bool
}

// parts are in the order in which they are applied: parts that evaluate the devices' boot order come after the devices.
var parts = []part{
	vcpus, memory, maxMemory, disks, interfaces, directBoot, run, fwCfg, serialPort, guestAgent, title, description, hotplugPorts,
	firmware, tpm, graphics, video, rng, watchdog, console, filesystems, devicesXML, memoryBacking, clock, onReboot, onCrash, hyperV,
	domainXML,
}
