package domainxml

import (
	"path"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Arrival is what a domain has otherwise on the host that it moves to.
type Arrival struct {
	// Volumes are those of disks, by their keys.
	Volumes map[string]volume.Volume
	// Kernel and Initrd are paths of the files that it boots directly; empty for the same ones.
	Kernel, Initrd string
	// FWCfg are the files in QEMU's fw_cfg device; nil for the same ones.
	FWCfg map[string]string
}

// IsEmpty reports whether the domain is the same on both hosts.
func (a Arrival) IsEmpty() bool {
	return len(a.Volumes)+len(a.FWCfg) == 0 && a.Kernel == "" && a.Initrd == ""
}

// WithMove renders a definition with the record of a move, as it is on the other host.
func (d *Domain) WithMove(is Move, there Arrival) (string, error) {
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return "", err
	}
	metadata := d.metadata
	metadata.Move, metadata.Disks = is, slices.Clone(metadata.Disks)
	for n, disk := range metadata.Disks {
		if v, goes := there.Volumes[disk.Key]; goes {
			metadata.Disks[n].Images = newImagesMetadata(v)
		}
	}
	if err := setMetadata(x, metadata); err != nil {
		return "", err
	}
	if there.IsEmpty() {
		return x.Marshal()
	}
	for n := range x.Devices.Disks {
		if v, goes := there.Volumes[diskKey(x.Devices.Disks[n])]; goes {
			applyVolume(&x.Devices.Disks[n], v)
		}
	}
	if there.Kernel != "" {
		x.OS.Kernel = there.Kernel
	}
	if there.Initrd != "" {
		x.OS.Initrd = there.Initrd
	}
	if there.FWCfg != nil {
		applyFWCfg(x, Machine{FWCfg: there.FWCfg})
	}
	return keepUnknown(x, d.text, x.Marshal)
}

// As renders a running domain as it is on the other host.
func (d *Domain) As(there Arrival) (string, error) { return d.WithMove(d.metadata.Move, there) }

// StateFolder is a folder in which a host keeps state of domains, and the names of a domain's files in it; none is all files.
type StateFolder struct {
	Path  string
	Names []string
}

// StateFolders are those with the variables of the domain's UEFI firmware, and with the state of its TPM: libvirt moves neither with a
// domain that is off. The files are there once it has been started. libvirt does not store their default paths (src/qemu/qemu_domain.c,
// qemu_tpm.c).
func (d *Domain) StateFolders() (all []StateFolder) {
	if file := nvramFile(d.xml); file != "" {
		all = append(all, StateFolder{path.Dir(file), []string{path.Base(file)}})
	} else if isUEFI(d.xml) {
		all = append(all, StateFolder{"/var/lib/libvirt/qemu/nvram", []string{d.xml.Name + "_VARS.fd", d.xml.Name + "_VARS.qcow2"}})
	}
	if t := emulatorOf(d.xml); t != nil {
		version := "tpm2"
		if t.Backend.Emulator.Version == "1.2" {
			version = "tpm1.2"
		}
		all = append(all, StateFolder{Path: path.Join("/var/lib/libvirt/swtpm", d.xml.UUID, version)})
	}
	return all
}

func nvramFile(d *libvirtxml.Domain) string {
	switch n := d.OS.NVRam; {
	case n == nil:
		return ""
	case n.Source != nil && n.Source.File != nil:
		return n.Source.File.File
	default:
		return n.NVRam
	}
}

// Remains renders a definition for a host that the domain has left: it has no storage, and is undefined to remove the state that libvirt
// leaves there. It is empty if nothing can be left.
func (d *Domain) Remains() (string, error) {
	if len(d.StateFolders()) == 0 {
		return "", nil
	}
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return "", err
	}
	x.OS.Kernel, x.OS.Initrd = "", ""
	x.Devices = &libvirtxml.DomainDeviceList{TPMs: x.Devices.TPMs}
	return x.Marshal()
}
