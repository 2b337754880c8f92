package domainxml

import (
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Attached is a device of a domain, of any kind, with the volume that it opens.
type Attached struct {
	// Key is virtclaim's key of the device, or its target name if it has none.
	Key string
	// Target is libvirt's name of the device, such as vda.
	Target string
	// Boots is true if the domain boots from the device: it has a boot order, or it is the root of the kernel that is booted directly, or
	// it is the first disk and there is neither. libvirt's own <boot dev='hd'/> is ignored.
	Boots bool
	// Pluggable is true if the device can be unplugged from a running guest and plugged in again.
	Pluggable bool
	// Drive is true for the medium of a CD-ROM or floppy drive: it can be ejected from a running guest, which keeps the drive.
	Drive bool
	// ReadOnly is true if the guest can't write to the device, whatever the access mode of its volume allows.
	ReadOnly bool
	// Ephemeral is true if the guest's writes are discarded when it stops: while it runs, the volume is only read.
	Ephemeral bool
	// Volume is the volume that the device opens, top image first, completed from virtclaim's metadata.
	Volume volume.Volume
	// Noted are the images that virtclaim's metadata record for the device while it opens none of them: a definition does not say what
	// is below an overlay that was created while the domain was off.
	Noted []volume.Image
}

// IsFolder reports whether the device shares a folder of the host, and is no disk.
func (a Attached) IsFolder() bool { return len(a.Volume.Images) > 0 && a.Volume.Images[0].IsFolder() }

// Kind is what the device is in a machine's configuration.
func (a Attached) Kind() string {
	if a.IsFolder() {
		return "filesystem"
	}
	return "disk"
}

// Writes reports whether the guest can write permanently to the volume that the device opens.
func (a Attached) Writes() bool {
	return len(a.Volume.Images) > 0 && a.Volume.Images[0].AccessMode != volume.ReadShared && !a.ReadOnly && !a.Ephemeral && !a.Drive
}

// Attached lists the devices of a domain, including targets of block jobs, volumes that a journal's domain fills, SCSI devices that are
// passed through, and shared folders of the host.
func (d *Domain) Attached() (all []Attached) {
	for i, disk := range d.xml.Devices.Disks {
		if isEmpty(disk) {
			continue
		}
		key := diskKey(disk)
		a := Attached{
			Key: key, Boots: boots(d.xml, i), Pluggable: isPluggable(disk), Drive: isDrive(disk), ReadOnly: isReadOnly(disk),
			Ephemeral: disk.Transient != nil, Volume: parseDisk(disk, d.metadata.disk(key)).Volume,
		}
		a.Noted = d.metadata.disk(key).missing(disk, a.Volume.Images)
		if disk.Target != nil {
			a.Target = disk.Target.Dev
		}
		all = append(all, a)
		if disk.Mirror != nil && disk.Mirror.Source != nil {
			a.Key += " (what it is copied to)"
			a.Pluggable, a.Volume = false, volume.Volume{Images: []volume.Image{writer(parseSource(disk.Mirror.Source))}}
			all = append(all, a)
		}
	}
	if i, ok := d.target(); ok {
		all = append(all, Attached{Key: "what is filled", Volume: volume.Volume{Images: []volume.Image{i}}})
	}
	all = append(all, passedThrough(d.xml)...)
	return append(all, d.folders()...)
}

// passedThrough returns the iSCSI logical units that a domain has as SCSI host devices, without QEMU's block layer in between.
func passedThrough(d *libvirtxml.Domain) (all []Attached) {
	for _, h := range d.Devices.Hostdevs {
		if h.SubsysSCSI == nil || h.SubsysSCSI.Source == nil || h.SubsysSCSI.Source.ISCSI == nil {
			continue
		}
		name := h.SubsysSCSI.Source.ISCSI.Name
		image := writer(volume.Image{Type: "network", Protocol: "iscsi", Format: "raw", Name: name})
		all = append(all, Attached{Key: name, Target: name, Volume: volume.Volume{Images: []volume.Image{image}}})
	}
	return all
}

func writer(i volume.Image) volume.Image {
	i.AccessMode = volume.WriteExclusive
	return i
}

// boots reports whether a domain boots from its nth disk.
func boots(d *libvirtxml.Domain, n int) bool {
	switch {
	case d.Devices.Disks[n].Boot != nil:
		return true
	case d.OS.Kernel != "" && runOf(d) != "":
		return isRunRoot(d, n)
	case d.OS.Kernel != "":
		return n == rootDisk(d)
	}
	return !hasBootOrder(d) && n == slices.IndexFunc(d.Devices.Disks, isFixed)
}

// rootDisk returns the index of the disk that a directly booted kernel has as its root: the one that root= names, or the first one if it
// names none of them, as in root=UUID=…. It is -1 without root=: such a guest runs from its initial RAM disk.
func rootDisk(d *libvirtxml.Domain) int {
	root := ""
	for _, parameter := range strings.Fields(d.OS.Cmdline) {
		if name, ok := strings.CutPrefix(parameter, "root="); ok {
			root = strings.TrimRight(name, "0123456789") // of a partition
		}
	}
	if root == "" {
		return -1
	}
	isNamed := func(k libvirtxml.DomainDisk) bool {
		return isFixed(k) && k.Target != nil && "/dev/"+k.Target.Dev == root
	}
	if n := slices.IndexFunc(d.Devices.Disks, isNamed); n >= 0 {
		return n
	}
	return slices.IndexFunc(d.Devices.Disks, isFixed)
}

// hasBootOrder reports whether a disk or interface of a domain has a boot order.
func hasBootOrder(d *libvirtxml.Domain) bool {
	return slices.ContainsFunc(d.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return k.Boot != nil }) ||
		slices.ContainsFunc(d.Devices.Interfaces, func(i libvirtxml.DomainInterface) bool { return i.Boot != nil })
}

// pluggableBuses are the buses from which a fixed disk can be unplugged while the guest runs: QEMU refuses it for SATA and IDE.
var pluggableBuses = []string{"virtio", "scsi", "usb"}

func isPluggable(d libvirtxml.DomainDisk) bool {
	return isFixed(d) && d.Target != nil && slices.Contains(pluggableBuses, d.Target.Bus)
}

// HasDisk reports whether Device has an element for the key.
func (d *Domain) HasDisk(key string) bool { return d.indexOf(key) >= 0 }

func (d *Domain) indexOf(key string) int {
	return slices.IndexFunc(d.xml.Devices.Disks,
		func(k libvirtxml.DomainDisk) bool { return diskKey(k) == key && (!isDrive(k) || !isEmpty(k)) })
}

// Device returns the <disk> element with that key; ok is false when the domain has none, or only an empty drive.
func (d *Domain) Device(key string) (element string, ok bool, err error) {
	n := d.indexOf(key)
	if n < 0 {
		return "", false, nil
	}
	element, err = d.xml.Devices.Disks[n].Marshal()
	return element, err == nil, err
}
