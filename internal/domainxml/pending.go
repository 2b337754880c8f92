package domainxml

import (
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Pending is what of a running domain is otherwise than want says, in the words of the configuration, so that it has to be
// stopped and started to be so.
func Pending(live string, want Machine) ([]string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	is, _, err := parse(d)
	if err != nil {
		return nil, err
	}
	wires, err := interfacesOf(d, live, want)
	return pendingOf(d, wires, is, want), err
}

// pendingOf is Pending for XML that is read already.
func pendingOf(d *libvirtxml.Domain, wires []liveInterface, is, want Machine) (pending []string) {
	differs := func(what string, different bool) {
		if different {
			pending = append(pending, what)
		}
	}
	for _, p := range parts {
		differs(p.name, p.same != nil && !p.same(is, want))
	}
	all := liveDisks(d)
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

// driftsFrom tells of a word of what is pending whether the machine shows as drift what it stands for: that waits for no start, the
// next update changes it.
func (m Machine) driftsFrom(stored Machine) func(what string) bool {
	drifts := map[string]bool{
		title.name: m.Drift.Title != nil, description.name: m.Drift.Description != nil, vcpus.name: m.Drift.VCPUs != 0, memory.name: m.Drift.Memory != 0,
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

// liveDisks are all disks and drives of a running domain. Its metadata tell only of what was plugged into it since, so that
// they do not say which drives of a domain made by hand are wanted.
func liveDisks(d *libvirtxml.Domain) map[string]libvirtxml.DomainDisk {
	all := map[string]libvirtxml.DomainDisk{}
	for _, disk := range d.Devices.Disks {
		all[diskKey(disk)] = disk
	}
	return all
}

// isAs tells whether a running device is as is wanted.
func isAs(d libvirtxml.DomainDisk, want Disk) bool {
	is := parseDisk(d, diskMark{})
	return is.Device == want.Device && is.Bus == want.Bus && is.BootOrder == want.BootOrder && is.Ephemeral == want.Ephemeral &&
		opens(is, want) && !showsOtherAccess(d, want) && tuningOf(d) == want.withDefaults(hasKey(d)) &&
		(want.Target == "" || want.Target == d.Target.Dev)
}

// isRemade tells whether a running device was started with a file of which want has another one under its name: QEMU goes on with the
// deleted one.
func (is Disk) isRemade(want Disk) bool {
	n := min(len(is.Volume.Images), len(want.Volume.Images))
	for i, image := range is.Volume.Images[:n] {
		if image.Name == want.Volume.Images[i].Name && volume.IsRemade(image, want.Volume.Images[i]) {
			return true
		}
	}
	return false
}

// opens tells whether a running device opens a volume as it is to be opened. A live chain may go on where want's ends.
func opens(live, want Disk) bool {
	if n := len(want.Volume.Images); len(live.Volume.Images) > n {
		live.Volume.Images = live.Volume.Images[:n]
	}
	return sameDevice(live, want)
}
