package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// asked are the attributes that are asked for and that libvirt would add by itself, or that a domain's XML has no words
// for: only the mark tells that somebody wants them.
func (m Machine) asked() (names []string) {
	add := func(name string, is bool) {
		if is {
			names = append(names, name)
		}
	}
	add("firmware", m.Firmware != nil)
	add("tpm.model", m.TPM != nil && m.TPM.Model != "")
	add("video", m.Video != nil)
	add("video.vram", m.Video != nil && m.Video.VRAM != 0)
	add("video.heads", m.Video != nil && m.Video.Heads != 0)
	add("watchdog", m.Watchdog != nil)
	return names
}

// everything is all that can be asked for.
var everything = Machine{
	Firmware: &Firmware{}, TPM: &TPM{Model: "any"}, Video: &Video{VRAM: 1, Heads: 1}, Watchdog: &Watchdog{},
}.asked()

// isUnmanaged tells whether nobody has said what of a domain was asked for, so that libvirt may have added it.
func (m Machine) isUnmanaged() bool { return m.Mark.Phase == "" }

// asks tells whether an attribute was asked for. In a domain that is not virtclaim's all that is there is.
func (m machineMark) asks(name string) bool { return m.Phase == "" || slices.Contains(m.Asked, name) }

// markOf is the mark that a domain has before it is written anew. What can't be read is an error there.
func markOf(d *libvirtxml.Domain) machineMark {
	mark, _ := parseMark(d)
	return mark
}

// The state that libvirt keeps beside a domain's disks, and removes with a domain that has what it belongs to.
const (
	keepsNVRAM = "nvram"
	keepsTPM   = "tpm"
)

// keeps is what libvirt may keep of a domain: what it had once stays until the domain is removed.
func keeps(d *libvirtxml.Domain) []string {
	all := markOf(d).Keeps
	if isUEFI(d) {
		all = append(all, keepsNVRAM)
	}
	if emulatorOf(d) != nil {
		all = append(all, keepsTPM)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Reclaim gives the XML of a domain that is about to be undefined with all whose state is to go with it. It is empty when
// the domain has that already.
func Reclaim(stored string) (string, error) {
	d, err := Unmarshal(stored)
	if err != nil {
		return "", err
	}
	mark, err := parseMark(d)
	if err != nil {
		return "", err
	}
	lacks := false
	if slices.Contains(mark.Keeps, keepsNVRAM) && !isUEFI(d) {
		lacks = true
		setUEFI(d, Firmware{})
	}
	if slices.Contains(mark.Keeps, keepsTPM) && emulatorOf(d) == nil {
		lacks = true
		d.Devices.TPMs = []libvirtxml.DomainTPM{newTPM(TPM{})}
	}
	if !lacks {
		return "", nil
	}
	return d.Marshal()
}
