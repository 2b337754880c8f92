package domainxml

import "libvirt.org/go/libvirtxml"

// applyBoot sets the kernel. libvirt refuses <boot dev> in <os> beside a <boot order> on a device, and adds
// <boot dev='hd'/> by itself when neither is there.
func applyBoot(d *libvirtxml.Domain, b *Boot) {
	if b == nil {
		b = &Boot{}
	}
	d.OS.Kernel, d.OS.Initrd, d.OS.Cmdline = b.Kernel, b.Initrd, b.Cmdline
	for _, disk := range d.Devices.Disks {
		if disk.Boot != nil {
			d.OS.BootDevices = nil
		}
	}
}

func parseBoot(d *libvirtxml.Domain) *Boot {
	b := Boot{Kernel: d.OS.Kernel, Initrd: d.OS.Initrd, Cmdline: d.OS.Cmdline}
	if b == (Boot{}) {
		return nil
	}
	return &b
}
