package domainxml

import (
	"cmp"
	"maps"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// targetPrefixes are the target prefixes of the buses that do not use sd.
var targetPrefixes = map[string]string{"virtio": "vd", "ide": "hd", "fdc": "fd"}

// TargetPrefix returns the prefix of target names on a bus.
func TargetPrefix(bus string) string { return cmp.Or(targetPrefixes[bus], "sd") }

// applyTarget sets the bus and the configured target name of a device. The address is removed when the bus changes, and, for SCSI,
// SATA and IDE, when the name changes, because it follows the name.
func applyTarget(d *libvirtxml.DomainDisk, want Disk) {
	if d.Target == nil || d.Target.Bus != want.Bus {
		d.Target = &libvirtxml.DomainDiskTarget{Bus: want.Bus}
		d.Address = nil
	}
	if want.Target == "" || want.Target == d.Target.Dev {
		return
	}
	if key := diskKey(*d); !hasKey(*d) && key != "" {
		d.Alias = &libvirtxml.DomainAlias{Name: diskAlias + key} // so far the target was the key
	}
	rename(d, want.Target)
}

func rename(d *libvirtxml.DomainDisk, target string) {
	d.Target.Dev = target
	if d.Address != nil && d.Address.Drive != nil {
		d.Address = nil
	}
}

// yieldTargets clears an automatically assigned target that is configured for another disk.
func yieldTargets(disks []libvirtxml.DomainDisk, want map[string]Disk) {
	holder := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if t := want[key].Target; t != "" {
			holder[t] = key
		}
	}
	for i := range disks {
		if d := &disks[i]; hasKey(*d) && holder[d.Target.Dev] != "" && holder[d.Target.Dev] != diskKey(*d) {
			rename(d, "")
		}
	}
}

// nameTargets gives each disk without a target the first free name of its bus.
func nameTargets(disks []libvirtxml.DomainDisk) {
	taken := map[string]bool{}
	for _, d := range disks {
		if d.Target != nil {
			taken[d.Target.Dev] = true
		}
	}
	for i := range disks {
		if disks[i].Target == nil || disks[i].Target.Dev != "" {
			continue
		}
		for n := 0; ; n++ {
			if name := TargetPrefix(disks[i].Target.Bus) + letters(n); !taken[name] {
				disks[i].Target.Dev, taken[name] = name, true
				break
			}
		}
	}
}

// letters counts as disk names do: a to z, then aa, ab and so on.
func letters(n int) string {
	s := ""
	for n++; n > 0; n = (n - 1) / 26 {
		s = string(rune('a'+(n-1)%26)) + s
	}
	return s
}

// controllerModels are models that guests have drivers for and that are fast, unlike libvirt's defaults: lsilogic, and USB 1.
var controllerModels = map[string]string{"scsi": "virtio-scsi", "usb": "qemu-xhci"}

// addControllers adds controllers for the buses that a domain's disks use and that have none.
func addControllers(d *libvirtxml.Domain) {
	for _, bus := range slices.Sorted(maps.Keys(controllerModels)) {
		on := func(k libvirtxml.DomainDisk) bool { return k.Target != nil && k.Target.Bus == bus }
		of := func(c libvirtxml.DomainController) bool { return c.Type == bus }
		if slices.ContainsFunc(d.Devices.Disks, on) && !slices.ContainsFunc(d.Devices.Controllers, of) {
			d.Devices.Controllers = append(d.Devices.Controllers,
				libvirtxml.DomainController{Type: bus, Index: new(uint), Model: controllerModels[bus]})
		}
	}
}

// hasController reports whether a running domain has a controller that a disk on a bus can be plugged into. Virtio needs none: each
// disk is a device of its own.
func hasController(d *libvirtxml.Domain, bus string) bool {
	return controllerModels[bus] == "" || slices.ContainsFunc(d.Devices.Controllers, func(c libvirtxml.DomainController) bool {
		return c.Type == bus && c.Model != "none"
	})
}
