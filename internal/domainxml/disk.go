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

// diskAlias starts the user alias that carries a disk's key. libvirt keeps aliases only when they start with ua-.
const diskAlias = "ua-disk-"

// hasKey tells whether virtclaim has named a disk.
func hasKey(d libvirtxml.DomainDisk) bool {
	return d.Alias != nil && strings.HasPrefix(d.Alias.Name, diskAlias)
}

// diskKey is the name of a disk: its alias if virtclaim gave it one, else its target.
func diskKey(d libvirtxml.DomainDisk) string {
	if hasKey(d) {
		return strings.TrimPrefix(d.Alias.Name, diskAlias)
	}
	if d.Target != nil {
		return d.Target.Dev
	}
	return ""
}

// isFixed leaves CD-ROM and floppy drives out.
func isFixed(d libvirtxml.DomainDisk) bool { return !isDrive(d) }

// isDisk tells whether a device is one of a machine's disks. Of the drives that come with a domain made by hand those are
// that virtclaim was asked to fill, and, as long as it has changed nothing of that domain, those with a medium. The rest is
// nobody's concern.
func isDisk(d libvirtxml.DomainDisk, mark machineMark) bool {
	key := diskKey(d)
	return isFixed(d) || isDrive(d) && (hasKey(d) || mark.disk(key).Key == key || mark.Phase == "" && !isEmpty(d))
}

// isUnmanagedDrive tells whether a device is a drive that came with a domain made by hand. It stays, also when it is not wanted.
func isUnmanagedDrive(d libvirtxml.DomainDisk) bool { return isDrive(d) && !hasKey(d) }

// applyDisks makes the disks those of want. A disk that stays keeps its target and address, so inserting one moves no
// other.
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

// newKeys are the disks that have no device yet, the ones to boot from first, so that they get the first targets.
func newKeys(want map[string]Disk, have map[string]bool) []string {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(want)), func(k string) bool { return have[k] })
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(want[a].BootOrder-1, want[b].BootOrder-1), cmp.Compare(a, b)) // 0, no order, is last
	})
	return keys
}

// applyDisk writes the intent into one device, and only what differs from it.
func applyDisk(d *libvirtxml.DomainDisk, want Disk) {
	if now := parseDisk(*d, diskMark{}); d.Source == nil || !sameDevice(now, want) {
		applyVolume(d, want.Volume)
	}
	endChain(d, want.Volume) // also that of a definition from before virtclaim ended chains
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

// sameDevice compares what of two disks' volumes a device's XML can hold.
func sameDevice(a, b Disk) bool {
	return (IsDrive(a.Device) || a.Volume.CopyOnRead == b.Volume.CopyOnRead) &&
		slices.EqualFunc(a.Volume.Images, b.Volume.Images, func(x, y volume.Image) bool {
			for _, i := range []*volume.Image{&x, &y} {
				i.AccessMode, i.Hosts, i.Binding, i.Generation = "", nil, "", ""
			}
			return reflect.DeepEqual(x, y)
		})
}

func parseDisks(d *libvirtxml.Domain, mark machineMark, m *Machine) error {
	m.Disks = map[string]Disk{}
	for _, disk := range d.Devices.Disks {
		if isDisk(disk, mark) {
			key := diskKey(disk)
			m.Disks[key] = parseDisk(disk, mark.disk(key))
		}
		if noted := mark.disk(diskKey(disk)); isFixed(disk) && len(noted.Images) > 0 {
			if e, is := external(disk, m.Disks[diskKey(disk)].Volume.Images, noted.names(), nil); is {
				m.addExternal(diskKey(disk), e)
			}
		}
	}
	return nil
}

// Compare adds to a stored machine what its running domain says otherwise. What merely waits for the next start is named as
// pending; of a domain that virtclaim has not changed nothing is: nobody asked for it here. A disk that somebody attached by
// hand, so that it is in no stored definition and has no key of virtclaim's, is there. A disk of virtclaim's that could be
// plugged in but is not, because that failed or was interrupted, has no volume. One that has a key and is not stored is one that
// an update took out: the guest keeps it until its next start. A device that has one volume here and another one there is
// unsettled.
func (m *Machine) Compare(live string) error {
	d, err := Unmarshal(live)
	if err != nil {
		return err
	}
	runs, mark, err := parse(d)
	if err != nil {
		return err
	}
	wires, err := interfacesOf(d, live, *m)
	if err != nil {
		return err
	}
	stored := *m
	stored.Disks = maps.Clone(m.Disks)
	m.compareChains(d, mark)
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
		switch is := parseDisk(disk, mark.disk(key)); {
		case ok && m.differs(d, i, is) && m.Mark.Phase == "":
			stored.Volume = is.Volume // nobody has asked for either here
			m.Disks[key] = stored
		case ok && m.differs(d, i, is):
			stored.Volume, stored.Unsettled = volume.Volume{}, true
			m.Disks[key] = stored
		case !ok && isFixed(disk) && !hasKey(disk):
			m.Disks[key] = is
		}
	}
	for key, disk := range m.Disks {
		if !has[key] && m.Mark.Phase != "" && canGain(d, disk) {
			disk.Volume = volume.Volume{}
			m.Disks[key] = disk
		}
	}
	m.compareInterfaces(wires)
	if m.Mark.Phase != "" {
		m.Pending = slices.DeleteFunc(pendingOf(d, wires, runs, stored), m.driftsFrom(stored))
		m.Pending = slices.DeleteFunc(m.Pending, m.isOfExternal)
	}
	return nil
}

// differs tells whether the nth disk of a running domain has another volume than the stored machine says, and could have that
// one before its next start. What the guest has booted from, or can write to in a drive, it could not.
func (m *Machine) differs(d *libvirtxml.Domain, n int, live Disk) bool {
	disk := d.Devices.Disks[n]
	stored := m.Disks[diskKey(disk)]
	if isDrive(disk) && isEmpty(disk) {
		return IsDrive(stored.Device) && len(stored.Volume.Images) > 0 && isReadOnly(disk)
	}
	if !canLose(d, n) || isFixed(disk) && (m.Mark.Phase == "" || live.namesPool() || stored.namesPool()) {
		return false
	}
	if isDrive(disk) && IsDrive(stored.Device) {
		live.Device = stored.Device // the drive itself may wait for the next start
	}
	return live.Another(stored)
}

func parseDisk(d libvirtxml.DomainDisk, mark diskMark) Disk {
	disk := Disk{
		Device: kindOf(d), Ephemeral: d.Transient != nil, Tentative: mark.Tentative, ReadOnly: isReadOnly(d) && mark.asks(readOnly),
	}
	if !isDrive(d) || !isEmpty(d) {
		disk.Volume = parseVolume(d)
		mark.complete(&disk)
	}
	if d.Target != nil {
		disk.Bus = d.Target.Bus
		if mark.asks(target) {
			disk.Target = d.Target.Dev
		}
	}
	if d.Boot != nil {
		disk.BootOrder = d.Boot.Order
	}
	parseTuning(d, mark, &disk)
	return disk
}

// kindOf is how a guest sees a device: libvirt's default is a disk.
func kindOf(d libvirtxml.DomainDisk) string { return cmp.Or(d.Device, Fixed) }
