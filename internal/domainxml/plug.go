package domainxml

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Prefix is that of Namespace where libvirt wants one.
const Prefix = "virtclaim"

// Loses are the disks, by key and sorted, that a running domain has to let go of before it can be as want says: those that
// want has not, and those that are another volume or on another bus there. Media are first: a guest may refuse to give one
// up, and then nothing else is to have changed. Only what can be unplugged or is in a drive, and is not booted from, is
// named; the rest stays until the domain is started anew. So does a disk that names a pool and a volume, as domains made by
// hand do: that may well be the file that want has. A drive loses nothing by being given that again.
func Loses(live string, want Machine) ([]string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	mark, err := parseMark(d)
	if err != nil {
		return nil, err
	}
	var media, fixed []string
	for i, disk := range d.Devices.Disks {
		key := diskKey(disk)
		if !canLose(d, i) {
			continue
		}
		intent, wanted := want.Disks[key]
		is := parseDisk(disk, mark.disk(key))
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
	return slices.Concat(media, fixed), nil
}

// canLose tells whether a running domain can be without its nth disk, or without the medium of that drive.
func canLose(d *libvirtxml.Domain, n int) bool {
	disk := d.Devices.Disks[n]
	return !isEmpty(disk) && !boots(d, n) && (isDrive(disk) || isPluggable(disk))
}

// Takes are the disks, by key and sorted, of which want is the first to use the storage in that way: those that the
// machine has not, has as another volume, or has under another access mode. An empty drive uses none.
func Takes(was, want Machine) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		before, had := was.Disks[key]
		after := want.Disks[key]
		if len(after.Volume.Images) > 0 && (!had || len(before.Volume.Images) == 0 || before.Another(after) || !slices.Equal(modes(before), modes(after))) {
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

// namesPool tells whether the disk is said to be a volume of a pool, and not which file that is.
func (is Disk) namesPool() bool {
	return len(is.Volume.Images) > 0 && is.Volume.Images[0].Type == "volume"
}

// Another tells whether want can't be had by changing a running device: it is another volume, or on another bus. A chain
// that is longer on one side is compared as far as both go: of an imported image nobody has said what is below. A drive
// keeps its medium on another bus: it gets there when the domain is started anew.
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

// Gains are the disks, by key and sorted, that want has and a running domain has not, as far as they can be plugged in. A
// domain without a SCSI controller gets no SCSI disk: libvirt would add a controller that guests have no driver for. One
// without a USB controller, or without the I/O thread, can't have the disk either. Nor does one get a disk whose key a drive
// still has there: the drive can't go, and libvirt refuses a second device of its alias.
func Gains(live string, want Machine) ([]string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		has := slices.ContainsFunc(d.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return diskKey(k) == key })
		if !has && canGain(d, want.Disks[key]) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func canGain(d *libvirtxml.Domain, disk Disk) bool {
	return !IsDrive(disk.Device) && slices.Contains(pluggableBuses, disk.Bus) && hasController(d, disk.Bus) && hasIOThread(d, disk.IOThread)
}

// Plug is what to plug into a running domain to give it the disk of that key as its stored definition has it. The place
// on the bus is left to libvirt where another device of the running domain has it, and a target that another one has is
// named anew: what an update took out may stay in a running domain until that ends.
func Plug(stored, live, key string) (string, error) {
	s, err := Unmarshal(stored)
	if err != nil {
		return "", err
	}
	l, err := Unmarshal(live)
	if err != nil {
		return "", err
	}
	n := slices.IndexFunc(s.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return diskKey(k) == key })
	if n < 0 {
		return "", fmt.Errorf("the stored definition of domain %s has no disk %s", s.Name, key)
	}
	disk := s.Devices.Disks[n]
	if slices.ContainsFunc(addresses(l), func(a libvirtxml.DomainAddress) bool { return reflect.DeepEqual(&a, disk.Address) }) {
		disk.Address = nil
	}
	renameTarget(&disk, l.Devices.Disks)
	disk.Boot = nil // a running domain has booted; and libvirt refuses an order that another device has
	return disk.Marshal()
}

// renameTarget gives a disk whose target another one of a running domain has a name that is free there. One that virtclaim
// has not named keeps its target: that is its key.
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

// addresses are those of the devices that can be plugged in or that share a bus with them.
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

// Grows are the disks of a running domain, by libvirt's names of them, whose storage may have more bytes than the guest knows.
// Files on the host are left out, and a device that still has another volume than want: that one is not to be touched.
func Grows(live string, want Machine) (map[string]int64, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	mark, err := parseMark(d)
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	for _, disk := range d.Devices.Disks {
		key := diskKey(disk)
		intent, v := want.Disks[key], want.Disks[key].Volume
		if !isFixed(disk) || disk.Target == nil || v.Capacity == nil || len(v.Images) == 0 || v.Images[0].Type == "file" {
			continue
		}
		if is := parseDisk(disk, mark.disk(key)); !is.Another(intent) {
			bytes[disk.Target.Dev] = *v.Capacity
		}
	}
	return bytes, nil
}
