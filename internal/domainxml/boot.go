package domainxml

import (
	"reflect"

	"libvirt.org/go/libvirtxml"
)

var directBoot = part{
	name: "boot", apply: applyBoot, parse: parseBoot,
	same: func(live, want Machine) bool { return reflect.DeepEqual(live.Boot, want.Boot) },
}

// applyBoot sets the kernel, initrd and command line. libvirt refuses <boot dev> in <os> together with a <boot order> on a device, and
// adds <boot dev='hd'/> by itself when the domain has neither.
func applyBoot(d *libvirtxml.Domain, m Machine) {
	var b Boot
	if m.Boot != nil {
		b = *m.Boot
	}
	d.OS.Kernel, d.OS.Initrd, d.OS.Cmdline = b.Kernel, b.Initrd, b.Cmdline
	if hasBootOrder(d) {
		d.OS.BootDevices = nil
	}
}

func parseBoot(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	if b := (Boot{Kernel: d.OS.Kernel, Initrd: d.OS.Initrd, Cmdline: d.OS.Cmdline}); b != (Boot{}) {
		m.Boot = &b
	}
	return nil
}
