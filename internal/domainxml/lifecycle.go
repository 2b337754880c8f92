package domainxml

import (
	"cmp"

	"libvirt.org/go/libvirtxml"
)

// The actions that libvirt has by default.
const (
	UsualOnReboot = "restart"
	UsualOnCrash  = "destroy"
)

// onReboot and onCrash are what libvirt does when the guest reboots or panics. Both can be changed in a running domain.
var (
	onReboot = action("on_reboot", UsualOnReboot,
		func(d *libvirtxml.Domain) *string { return &d.OnReboot }, func(m *Machine) *string { return &m.OnReboot })
	onCrash = action("on_crash", UsualOnCrash,
		func(d *libvirtxml.Domain) *string { return &d.OnCrash }, func(m *Machine) *string { return &m.OnCrash })
)

// action is one of libvirt's actions, which is empty in a Machine that has the usual one.
func action(name, usual string, of func(*libvirtxml.Domain) *string, in func(*Machine) *string) part {
	return part{
		name: name,
		apply: func(d *libvirtxml.Domain, m Machine) {
			if *in(&m) != "" || *of(d) != "" {
				*of(d) = cmp.Or(*in(&m), usual)
			}
		},
		parse: func(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
			if *of(d) != usual {
				*in(m) = *of(d)
			}
			return nil
		},
		same: func(live, want Machine) bool { return *in(&live) == *in(&want) },
	}
}
