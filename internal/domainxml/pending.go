package domainxml

import (
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Pending returns the attributes, as named in the configuration, in which the running domain differs from want and that require a
// restart.
func (d *Domain) Pending(want Machine) ([]string, error) {
	is, err := d.Machine()
	if err != nil {
		return nil, err
	}
	return d.pending(d.interfaces(want), is, want), nil
}

// pending is Pending for a domain whose machine is read already.
func (d *Domain) pending(wires []liveInterface, is, want Machine) (pending []string) {
	differs := func(what string, different bool) {
		if different {
			pending = append(pending, what)
		}
	}
	for _, p := range parts {
		differs(p.name, p.same != nil && !p.same(is, want))
	}
	differs(domainXML.name, !d.startedWith(is, want))
	all := liveDisks(d.xml)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_, wanted := want.Disks[key]
		differs("disk "+key, !wanted && !isUnmanagedDrive(all[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		disk, has := all[key]
		differs("disk "+key, !has || !isAs(disk, want.Disks[key]) || is.Disks[key].isRemade(want.Disks[key]))
	}
	return append(pending, pendingInterfaces(wires, want)...)
}

// driftsFrom returns a function that reports whether the machine shows a pending change as drift: that does not wait for a restart,
// because the next update corrects it.
func (m Machine) driftsFrom(stored Machine) func(what string) bool {
	drifts := map[string]bool{
		title.name: m.Drift.Title != nil, description.name: m.Drift.Description != nil,
		vcpus.name: m.Drift.VCPUs != 0 || m.Drift.Pins != nil, memory.name: m.Drift.Memory != 0,
	}
	for _, all := range []map[string]Disk{m.Disks, stored.Disks} {
		for key := range all {
			drifts["disk "+key] = !reflect.DeepEqual(m.Disks[key], stored.Disks[key])
		}
	}
	for _, all := range []map[string]Interface{m.Interfaces, stored.Interfaces} {
		for key := range all {
			drifts["interface "+key] = !reflect.DeepEqual(m.Interfaces[key], stored.Interfaces[key])
		}
	}
	return func(what string) bool { return drifts[what] }
}

// liveDisks returns all disks and drives of a running domain. Unmanaged drives are included, because the metadata of a running domain
// record only devices plugged in since its start, so they do not show which unmanaged drives are configured.
func liveDisks(d *libvirtxml.Domain) map[string]libvirtxml.DomainDisk {
	all := map[string]libvirtxml.DomainDisk{}
	for _, disk := range d.Devices.Disks {
		all[diskKey(disk)] = disk
	}
	return all
}

// isAs reports whether a running device matches want.
func isAs(d libvirtxml.DomainDisk, want Disk) bool {
	is, tuning := parseDisk(d, diskMetadata{}), tuningOf(d)
	if tuning.IOTune.same(want.IOTune) {
		tuning.IOTune = want.IOTune
	}
	return is.Device == want.Device && is.Bus == want.Bus && is.BootOrder == want.BootOrder && is.Ephemeral == want.Ephemeral &&
		opens(is, want) && !showsOtherAccess(d, want) && tuning == want.withDefaults(hasKey(d)) &&
		(want.Target == "" || want.Target == d.Target.Dev)
}

// isRemade reports whether a running device was started with a file that want has recreated under the same name: QEMU continues to use
// the deleted one.
func (is Disk) isRemade(want Disk) bool {
	n := min(len(is.Volume.Images), len(want.Volume.Images))
	for i, image := range is.Volume.Images[:n] {
		if image.Name == want.Volume.Images[i].Name && volume.IsRemade(image, want.Volume.Images[i]) {
			return true
		}
	}
	return false
}

// opens reports whether a running device opens a volume as in want. A live chain may be longer than want's.
func opens(live, want Disk) bool {
	if n := len(want.Volume.Images); len(live.Volume.Images) > n {
		live.Volume.Images = live.Volume.Images[:n]
	}
	return sameDevice(live, want)
}
