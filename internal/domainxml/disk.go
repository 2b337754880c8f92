package domainxml

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var disks = part{name: "disks", apply: applyDisks, parse: parseDisks}

// diskAlias is the prefix of the user alias that contains a disk's key. libvirt keeps aliases only when they start with ua-.
const diskAlias = "ua-disk-"

// hasKey reports whether a disk has a key assigned by virtclaim.
func hasKey(d libvirtxml.DomainDisk) bool {
	return d.Alias != nil && strings.HasPrefix(d.Alias.Name, diskAlias)
}

// diskKey returns the key of a disk: that of its alias if virtclaim has assigned one, else its target name.
func diskKey(d libvirtxml.DomainDisk) string {
	if hasKey(d) {
		return strings.TrimPrefix(d.Alias.Name, diskAlias)
	}
	if d.Target != nil {
		return d.Target.Dev
	}
	return ""
}

// isFixed reports whether a device is a disk, and no CD-ROM or floppy drive.
func isFixed(d libvirtxml.DomainDisk) bool { return !isDrive(d) }

// isDisk reports whether a device is one of a machine's disks. Of the unmanaged drives of a domain these are the ones that are
// configured in virtclaim, and, until virtclaim changes the domain, those with a medium. All other drives are ignored.
func isDisk(d libvirtxml.DomainDisk, metadata machineMetadata) bool {
	key := diskKey(d)
	return isFixed(d) || isDrive(d) && (hasKey(d) || metadata.disk(key).Key == key || metadata.Phase == "" && !isEmpty(d))
}

// isUnmanagedDrive reports whether a device is a drive that was added outside of Terraform. It is kept even if it is not configured.
func isUnmanagedDrive(d libvirtxml.DomainDisk) bool { return isDrive(d) && !hasKey(d) }

// applyDisks replaces the disks of a domain with those of m. A disk that stays keeps its target and address, so that inserting a disk
// moves no other.
func applyDisks(d *libvirtxml.Domain, m Machine) {
	want := m.Disks
	var kept []libvirtxml.DomainDisk
	have := map[string]bool{}
	for _, disk := range d.Devices.Disks {
		key := diskKey(disk)
		intent, wanted := want[key]
		switch {
		case wanted && intent.Device == kindOf(disk):
			have[key] = true
			applyDisk(&disk, intent)
		case isFixed(disk) || isDrive(disk) && (wanted || !isUnmanagedDrive(disk)):
			continue
		}
		kept = append(kept, disk)
	}
	for _, key := range newKeys(want, have) {
		disk := libvirtxml.DomainDisk{Device: cmp.Or(want[key].Device, Fixed), Alias: &libvirtxml.DomainAlias{Name: diskAlias + key}}
		applyDisk(&disk, want[key])
		kept = append(kept, disk)
	}
	yieldTargets(kept, want)
	nameTargets(kept)
	d.Devices.Disks = kept
	addControllers(d)
	addIOThreads(d)
}

// newKeys returns the keys of the disks that have no device yet. Those with a boot order are first, so that they get the first
// targets.
func newKeys(want map[string]Disk, have map[string]bool) []string {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(want)), func(k string) bool { return have[k] })
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(want[a].BootOrder-1, want[b].BootOrder-1), cmp.Compare(a, b)) // an order of 0, which is none, sorts last
	})
	return keys
}

// applyDisk updates one device to match want, and writes only what differs.
func applyDisk(d *libvirtxml.DomainDisk, want Disk) {
	if now := parseDisk(*d, diskMetadata{}); d.Source == nil || !sameDevice(now, want) {
		applyVolume(d, want.Volume)
	}
	endChain(d, want.Volume) // also in definitions that were stored before virtclaim ended chains
	if hasKey(*d) || showsOtherAccess(*d, want) {
		applyAccess(d, want)
	}
	applyTarget(d, want)
	applyTuning(d, want.withDefaults(hasKey(*d)))
	if (d.Transient != nil) != want.Ephemeral {
		d.Transient = nil
		if want.Ephemeral {
			d.Transient = &libvirtxml.DomainDiskTransient{}
		}
	}
	switch {
	case want.BootOrder == 0:
		d.Boot = nil
	case d.Boot == nil || d.Boot.Order != want.BootOrder:
		d.Boot = &libvirtxml.DomainDeviceBoot{Order: want.BootOrder}
	}
}

// sameDevice reports whether the volumes of two disks are equal in everything that a device's XML can express.
func sameDevice(a, b Disk) bool {
	return (IsDrive(a.Device) || a.Volume.CopyOnRead == b.Volume.CopyOnRead) &&
		slices.EqualFunc(a.Volume.Images, b.Volume.Images, func(x, y volume.Image) bool {
			for _, i := range []*volume.Image{&x, &y} {
				i.AccessMode, i.Hosts, i.Binding, i.Generation = "", nil, "", ""
			}
			return reflect.DeepEqual(x, y)
		})
}

func parseDisks(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	m.Disks = map[string]Disk{}
	for _, disk := range d.Devices.Disks {
		if isDisk(disk, metadata) {
			key := diskKey(disk)
			m.Disks[key] = parseDisk(disk, metadata.disk(key))
		}
		if noted := metadata.disk(diskKey(disk)); isFixed(disk) && len(noted.Images) > 0 {
			if e, is := external(disk, m.Disks[diskKey(disk)].Volume.Images, noted.names(), nil); is {
				e.Binding = noted.Images[0].Binding
				m.addExternal(diskKey(disk), e)
			}
		}
	}
	return nil
}

// Compare adds to a stored machine the differences of its running domain. Changes that wait for the next start are listed as pending,
// but not for a domain that virtclaim has never changed.
//
// An attached disk without a definition and without virtclaim's key was added outside of Terraform: it is listed. With a key, it was
// removed by an update, and the guest keeps it until its next start. A stored disk that could be plugged in but is not attached has no
// volume: plugging it in failed or was interrupted. A disk with different volumes in definition and running domain is conflicting.
func (m *Machine) Compare(live *Domain) error {
	runs, err := live.Machine()
	if err != nil {
		return err
	}
	d, wires := live.xml, live.interfaces(*m)
	stored := *m
	stored.Disks = maps.Clone(m.Disks)
	m.compareChains(live)
	m.AgentPort, m.AgentConnected, m.Endpoints = runs.GuestAgent, runs.AgentConnected, endpointsOf(d)
	for _, p := range parts {
		if p.drift != nil {
			p.drift(m, runs)
		}
	}
	has := map[string]bool{}
	for i, disk := range d.Devices.Disks {
		key := diskKey(disk)
		has[key] = true
		stored, ok := m.Disks[key]
		switch is := parseDisk(disk, live.metadata.disk(key)); {
		case ok && m.differs(d, i, is) && m.Metadata.Phase == "":
			stored.Volume = is.Volume // neither was configured by virtclaim: the running domain counts
			m.Disks[key] = stored
		case ok && m.differs(d, i, is):
			stored.Volume, stored.Conflicting = volume.Volume{}, true
			m.Disks[key] = stored
		case ok && isFixed(disk) && !IsDrive(stored.Device) && !stored.IOTune.same(is.IOTune): // an update changes it live
			stored.IOTune = is.IOTune
			m.Disks[key] = stored
		case !ok && isFixed(disk) && !hasKey(disk):
			m.Disks[key] = is
		}
	}
	for key, disk := range m.Disks {
		if !has[key] && m.Metadata.Phase != "" && canAttach(d, disk) {
			disk.Volume = volume.Volume{}
			m.Disks[key] = disk
		}
	}
	m.compareInterfaces(wires)
	if m.Metadata.Phase != "" {
		m.Pending = slices.DeleteFunc(live.pending(wires, runs, stored), m.driftsFrom(stored))
		m.Pending = slices.DeleteFunc(m.Pending, m.isOfExternal)
	}
	return nil
}

// differs reports whether the nth disk of a running domain has another volume than the stored machine, and could be changed to it
// before the next start. A disk that the guest has booted from, and the medium of a writable drive, can't be changed.
func (m *Machine) differs(d *libvirtxml.Domain, n int, live Disk) bool {
	disk := d.Devices.Disks[n]
	stored := m.Disks[diskKey(disk)]
	if isDrive(disk) && isEmpty(disk) {
		return IsDrive(stored.Device) && len(stored.Volume.Images) > 0 && isReadOnly(disk)
	}
	if !canDetach(d, n) || isFixed(disk) && (m.Metadata.Phase == "" || live.namesPool() || stored.namesPool()) {
		return false
	}
	if isDrive(disk) && IsDrive(stored.Device) {
		live.Device = stored.Device // a change of the drive itself waits for the next start
	}
	return live.Another(stored)
}

func parseDisk(d libvirtxml.DomainDisk, metadata diskMetadata) Disk {
	disk := Disk{
		Device: kindOf(d), Ephemeral: d.Transient != nil, Tentative: metadata.Tentative,
		ReadOnly: isReadOnly(d) && metadata.wasConfigured(readOnly),
	}
	if !isDrive(d) || !isEmpty(d) {
		disk.Volume = parseVolume(d)
		metadata.complete(&disk)
	}
	if d.Target != nil {
		disk.Bus, disk.Target = d.Target.Bus, d.Target.Dev
	}
	if d.Boot != nil {
		disk.BootOrder = d.Boot.Order
	}
	parseTuning(d, metadata, &disk)
	return disk
}

// kindOf returns the kind of device that the guest sees: libvirt's default is a disk.
func kindOf(d libvirtxml.DomainDisk) string { return cmp.Or(d.Device, Fixed) }
