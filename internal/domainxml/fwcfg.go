package domainxml

import (
	"maps"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// fwCfg are files of the host in QEMU's fw_cfg device.
var fwCfg = part{
	name: "fw_cfg", apply: applyFWCfg,
	parse: func(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
		m.FWCfg = fwFiles(d)
		return nil
	},
	same: func(live, want Machine) bool { return maps.Equal(live.FWCfg, want.FWCfg) },
}

func applyFWCfg(d *libvirtxml.Domain, m Machine) {
	if maps.Equal(fwFiles(d), m.FWCfg) {
		return
	}
	var entries []libvirtxml.DomainSysInfoEntry
	for _, name := range slices.Sorted(maps.Keys(m.FWCfg)) {
		entries = append(entries, libvirtxml.DomainSysInfoEntry{Name: name, File: m.FWCfg[name]})
	}
	setEntries(d, isFile, entries)
}

// fwFiles are the paths of the files, by the names of their entries; nil if there are none.
func fwFiles(d *libvirtxml.Domain) (files map[string]string) {
	for _, e := range entriesOf(d, isFile) {
		if files == nil {
			files = map[string]string{}
		}
		files[e.Name] = e.File
	}
	return files
}

func isFile(e libvirtxml.DomainSysInfoEntry) bool { return e.File != "" }

// isAttributed reports whether an entry is one of an attribute, and not of domain_xml.
func isAttributed(e libvirtxml.DomainSysInfoEntry) bool { return isRun(e) || isFile(e) }

// entriesOf are the entries of the fw_cfg device that is takes.
func entriesOf(d *libvirtxml.Domain, is func(libvirtxml.DomainSysInfoEntry) bool) (all []libvirtxml.DomainSysInfoEntry) {
	for _, s := range d.SysInfo {
		if s.FWCfg == nil {
			continue
		}
		for _, e := range s.FWCfg.Entry {
			if is(e) {
				all = append(all, e)
			}
		}
	}
	return all
}

// setEntries replaces them, and leaves the others. libvirt takes one element of each type.
func setEntries(d *libvirtxml.Domain, is func(libvirtxml.DomainSysInfoEntry) bool, to []libvirtxml.DomainSysInfoEntry) {
	hasFWCfg := func(s libvirtxml.DomainSysInfo) bool { return s.FWCfg != nil }
	if !slices.ContainsFunc(d.SysInfo, hasFWCfg) {
		d.SysInfo = append(d.SysInfo, libvirtxml.DomainSysInfo{FWCfg: &libvirtxml.DomainSysInfoFWCfg{}})
	}
	fw := d.SysInfo[slices.IndexFunc(d.SysInfo, hasFWCfg)].FWCfg
	if fw.Entry = append(slices.DeleteFunc(fw.Entry, is), to...); len(fw.Entry) == 0 {
		d.SysInfo = slices.DeleteFunc(d.SysInfo, hasFWCfg)
	}
}

// BootFiles are the paths of the kernel and the initial RAM disk that the domain boots directly.
func (d *Domain) BootFiles() (paths []string) {
	if d == nil {
		return nil
	}
	return slices.DeleteFunc([]string{d.xml.OS.Kernel, d.xml.OS.Initrd}, func(path string) bool { return path == "" })
}

// FWCfgFiles are the paths of the files in QEMU's fw_cfg device.
func (d *Domain) FWCfgFiles() []string {
	if d == nil {
		return nil
	}
	return slices.Collect(maps.Values(fwFiles(d.xml)))
}

// FWCfgValues are the names of entries in domain_xml. What is no XML has none.
func FWCfgValues(text string) (names []string) {
	d, err := parseElements(text)
	if err != nil {
		return nil
	}
	for _, e := range entriesOf(d, func(libvirtxml.DomainSysInfoEntry) bool { return true }) {
		names = append(names, e.Name)
	}
	return names
}
