package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// run is in QEMU's fw_cfg device, which the init reads.
var run = part{
	name: "run", apply: applyRun, parse: parseRun,
	same: func(live, want Machine) bool { return live.Run == want.Run },
}

// applyRun leaves the other entries of the device.
func applyRun(d *libvirtxml.Domain, m Machine) {
	if m.Run == runOf(d) {
		return
	}
	for n := range d.SysInfo {
		if fw := d.SysInfo[n].FWCfg; fw != nil {
			fw.Entry = slices.DeleteFunc(fw.Entry, isRun)
		}
	}
	d.SysInfo = slices.DeleteFunc(d.SysInfo, func(s libvirtxml.DomainSysInfo) bool { return s.FWCfg != nil && len(s.FWCfg.Entry) == 0 })
	if m.Run == "" {
		return
	}
	entry := libvirtxml.DomainSysInfoEntry{Name: guestinit.ConfigEntry, Value: m.Run}
	for n := range d.SysInfo { // libvirt takes one element of each type
		if fw := d.SysInfo[n].FWCfg; fw != nil {
			fw.Entry = append(fw.Entry, entry)
			return
		}
	}
	d.SysInfo = append(d.SysInfo,
		libvirtxml.DomainSysInfo{FWCfg: &libvirtxml.DomainSysInfoFWCfg{Entry: []libvirtxml.DomainSysInfoEntry{entry}}})
}

func isRun(e libvirtxml.DomainSysInfoEntry) bool { return e.Name == guestinit.ConfigEntry }

// isOnlyRun reports whether a fw_cfg device has nothing else.
func isOnlyRun(s libvirtxml.DomainSysInfo) bool {
	return s.FWCfg != nil && !slices.ContainsFunc(s.FWCfg.Entry, func(e libvirtxml.DomainSysInfoEntry) bool { return !isRun(e) })
}

func runOf(d *libvirtxml.Domain) string {
	for _, s := range d.SysInfo {
		if s.FWCfg == nil {
			continue
		}
		if n := slices.IndexFunc(s.FWCfg.Entry, isRun); n >= 0 {
			return s.FWCfg.Entry[n].Value
		}
	}
	return ""
}

func parseRun(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	m.Run = runOf(d)
	return nil
}

// isRunRoot reports whether the nth disk has the root file system of what is run.
func isRunRoot(d *libvirtxml.Domain, n int) bool {
	config, err := guestinit.Decode([]byte(runOf(d)))
	return err != nil || d.Devices.Disks[n].Serial == config.Root // of what can't be read, any disk may be it
}
