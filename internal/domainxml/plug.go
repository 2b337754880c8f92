package domainxml

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Prefix is the XML prefix of Namespace where libvirt requires one.
const Prefix = "virtclaim"

// DisksToDetach returns the keys of the disks that have to be detached from a running domain before it can match want: those that are not
// in want, and those with another volume or on another bus. Media are first, because a guest may refuse to eject one, and then nothing else
// should have changed. Each group is sorted.
//
// Only devices that can be unplugged, or ejected from a drive, and that are not booted from are listed; others stay until the next
// start. So does a disk that names a pool and a volume, as in domains defined outside of Terraform: it may well be the file that want
// has. A drive's medium is listed in that case, too, because reinserting it does no harm.
func (d *Domain) DisksToDetach(want Machine) []string {
	var media, fixed []string
	for i, disk := range d.xml.Devices.Disks {
		key := diskKey(disk)
		if !canDetach(d.xml, i) {
			continue
		}
		intent, wanted := want.Disks[key]
		is := parseDisk(disk, d.metadata.disk(key))
		switch {
		case wanted && (!is.Another(intent) || !isDrive(disk) && is.namesPool()), !wanted && isUnmanagedDrive(disk):
		case isDrive(disk):
			media = append(media, key)
		default:
			fixed = append(fixed, key)
		}
	}
	slices.Sort(media)
	slices.Sort(fixed)
	return slices.Concat(media, fixed)
}

// canDetach reports whether a running domain's nth disk can be unplugged, or the medium of that drive be ejected.
func canDetach(d *libvirtxml.Domain, n int) bool {
	disk := d.Devices.Disks[n]
	return !isEmpty(disk) && !boots(d, n) && (isDrive(disk) || isPluggable(disk))
}

// ChangedUses returns the keys, sorted, of the disks whose storage want starts to use, or uses in another way: those that was does not
// have, has with another volume, or has with another access mode. An empty drive uses none.
func ChangedUses(was, want Machine) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		before, had := was.Disks[key]
		after := want.Disks[key]
		if len(after.Volume.Images) > 0 &&
			(!had || len(before.Volume.Images) == 0 || before.Another(after) || !slices.Equal(modes(before), modes(after))) {
			keys = append(keys, key)
		}
	}
	return keys
}

func modes(d Disk) (all []volume.AccessMode) {
	for _, i := range d.Volume.Images {
		all = append(all, i.AccessMode)
	}
	return all
}

// namesPool reports whether the disk is defined as a volume of a pool, which does not say which file that is.
func (is Disk) namesPool() bool {
	return len(is.Volume.Images) > 0 && is.Volume.Images[0].Type == "volume"
}

// Another reports whether want can't be reached by updating a running device: it has another volume, or is on another bus. Chains of
// different length are compared up to the shorter one, because the images below an imported image are not configured. A drive that
// moves to another bus keeps its medium: the move waits for the next start.
func (is Disk) Another(want Disk) bool {
	n := min(len(is.Volume.Images), len(want.Volume.Images))
	return is.Device != want.Device || !IsDrive(is.Device) && is.Bus != want.Bus ||
		(len(is.Volume.Images) == 0) != (len(want.Volume.Images) == 0) ||
		!slices.EqualFunc(is.Volume.Images[:n], want.Volume.Images[:n], sameImage)
}

// sameImage is SameStorage for two images that are opened on one host. A portal that moved is the same storage.
func sameImage(a, b volume.Image) bool {
	a.Hosts, b.Hosts = nil, nil
	return volume.SameStorage(a, b)
}

// DisksToAttach returns the keys, sorted, of the disks of want that a running domain does not have and that can be plugged in. A SCSI disk
// requires a SCSI controller, because libvirt would add one that guests have no driver for; a USB controller and the I/O thread have
// to exist, too. A key that a drive still has is left out, because drives can't be unplugged and libvirt refuses a duplicate alias.
func (d *Domain) DisksToAttach(want Machine) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		has := slices.ContainsFunc(d.xml.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return diskKey(k) == key })
		if !has && canAttach(d.xml, want.Disks[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

func canAttach(d *libvirtxml.Domain, disk Disk) bool {
	return !IsDrive(disk.Device) && slices.Contains(pluggableBuses, disk.Bus) && hasController(d, disk.Bus) && hasIOThread(d, disk.IOThread)
}

// Plug returns the element to plug into the running domain for the disk with that key, as in the stored definition. The address is left
// to libvirt if another device has it, and a target that is in use is renamed: a device that an update removed may stay in a running
// domain until it stops.
func (d *Domain) Plug(stored *Domain, key string) (string, error) {
	s, l := stored.xml, d.xml
	n := slices.IndexFunc(s.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return diskKey(k) == key })
	if n < 0 {
		return "", fmt.Errorf("the stored definition of domain %s has no disk %s", s.Name, key)
	}
	disk, err := cloneDisk(s.Devices.Disks[n])
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(addresses(l), func(a libvirtxml.DomainAddress) bool { return reflect.DeepEqual(&a, disk.Address) }) {
		disk.Address = nil
	}
	renameTarget(&disk, l.Devices.Disks)
	disk.Boot = nil // a running domain has booted already, and libvirt refuses an order that another device has
	return disk.Marshal()
}

// renameTarget gives a disk a free target name if another disk of a running domain has its target. A disk without a key keeps its
// target, which is its key.
func renameTarget(d *libvirtxml.DomainDisk, live []libvirtxml.DomainDisk) {
	taken := func(k libvirtxml.DomainDisk) bool {
		return k.Target != nil && d.Target != nil && k.Target.Dev == d.Target.Dev
	}
	if !hasKey(*d) || !slices.ContainsFunc(live, taken) {
		return
	}
	d.Target.Dev = ""
	nameTargets(append(slices.Clone(live), *d))
}

// addresses returns the addresses of the devices that can be plugged in or that share a bus with such devices.
func addresses(d *libvirtxml.Domain) (all []libvirtxml.DomainAddress) {
	add := func(a *libvirtxml.DomainAddress) {
		if a != nil {
			all = append(all, *a)
		}
	}
	for _, k := range d.Devices.Disks {
		add(k.Address)
	}
	for _, k := range d.Devices.Controllers {
		add(k.Address)
	}
	for _, k := range d.Devices.Interfaces {
		add(k.Address)
	}
	return all
}

// DisksToGrow returns the capacity in bytes of the disks of a running domain, by libvirt's target names, whose storage may be larger than
// the guest knows. Files on the host are left out, and devices that still have another volume than want, which must not be resized.
func (d *Domain) DisksToGrow(want Machine) map[string]int64 {
	bytes := map[string]int64{}
	for _, disk := range d.xml.Devices.Disks {
		key := diskKey(disk)
		intent, v := want.Disks[key], want.Disks[key].Volume
		if !isFixed(disk) || disk.Target == nil || v.Capacity == nil || len(v.Images) == 0 || v.Images[0].Type == "file" {
			continue
		}
		if is := parseDisk(disk, d.metadata.disk(key)); !is.Another(intent) {
			bytes[disk.Target.Dev] = *v.Capacity
		}
	}
	return bytes
}
