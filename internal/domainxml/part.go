package domainxml

import "libvirt.org/go/libvirtxml"

// part is one thing that a machine consists of: what a Machine says of it, to libvirt's domain and back.
type part struct {
	// name is the attribute's in the configuration.
	name string
	// apply writes what is wanted into a domain, new or not, and leaves alone what already says the same.
	apply func(*libvirtxml.Domain, Machine)
	// parse reads it out of a domain. The mark tells what a domain has no words for.
	parse func(*libvirtxml.Domain, machineMark, *Machine) error
	// same tells whether a running domain is in this as is wanted; nil where that is told in another way.
	same func(live, want Machine) bool
	// drift notes in a stored machine what somebody has changed in the running one alone; nil where nobody can. What merely
	// waits for the next start is none.
	drift func(stored *Machine, live Machine)
}

// parts are in the order in which they are applied: what looks at the devices' boot order comes after the devices.
var parts = []part{
	vcpus, memory, maxMemory, disks, interfaces, directBoot, serialPort, guestAgent, title, description,
}
