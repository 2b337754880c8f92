package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Hardware is the emulated hardware, with libvirt's names. libvirt chooses a default for empty fields.
type Hardware struct{ Arch, Type, DomainType string }

// DomainCapabilities are the capabilities of a host for domains of one Hardware, with libvirt's names. A list is empty if libvirt does not
// report it.
type DomainCapabilities struct {
	// Hardware is the requested one with aliases resolved and defaults chosen.
	Hardware
	MaxVCPUs uint
	CPUModes []string
	// CPUModels are those of the mode custom. Emulation also includes models that the host's own processor supports only in part.
	CPUModels []string
	// HostModel is the element cpu of the mode host-model, with the model and the features that differ from it.
	HostModel string
	// Firmware are the kinds that libvirt can select automatically, such as efi; SecureBoot tells whether one of them supports secure boot.
	Firmware   []string
	SecureBoot bool
	// DiskDevices and DiskBuses are the supported devices, such as floppy, and buses, such as fdc, of disks.
	DiskDevices, DiskBuses []string
	Graphics, Video        []string
	TPMModels, TPMBackends []string
	RNGBackends            []string
	Filesystems            []string
}

// CannotEmulateError is the error of hardware that a host does not support at all.
type CannotEmulateError struct {
	// What is arch, type or domain_type, Asked the requested value.
	What, Asked string
	// Has are the supported values; of machine types only the aliases.
	Has []string
}

func (e *CannotEmulateError) Error() string {
	return fmt.Sprintf("it has no %s; it has %s", e.Asked, strings.Join(e.Has, ", "))
}

// DomainCapabilities queries the host's capabilities for such a domain. Unsupported hardware is a CannotEmulateError. The answer is cached,
// because it changes only with the host's software.
func (h *Host) DomainCapabilities(ctx context.Context, of Hardware) (DomainCapabilities, error) {
	if known, ok := h.able.Load(of); ok {
		return known.(DomainCapabilities), nil
	}
	op := "ask for the capabilities of " + strings.Join(slices.DeleteFunc(
		[]string{"domain", of.Arch, of.Type, of.DomainType}, func(s string) bool { return s == "" }), " ")
	found, err := call(ctx, h, op, func(l *libvirt.Libvirt) (libvirtxml.DomainCaps, error) {
		var caps libvirtxml.DomainCaps
		text, err := l.ConnectGetDomainCapabilities(nil, optional(of.Arch), optional(of.Type), optional(of.DomainType), 0)
		if err != nil {
			return caps, err
		}
		return caps, caps.Unmarshal(text)
	})
	if h.unresponsive.Store(unreachable(err) || ctx.Err() != nil); err != nil {
		return DomainCapabilities{}, h.unsupportedReason(ctx, op, of, err)
	}
	able := domainCapabilities(found)
	h.able.Store(of, able)
	return able, nil
}

// Unresponsive reports whether the host did not answer the last query of its capabilities.
func (h *Host) Unresponsive() bool { return h.unresponsive.Load() }

func optional(s string) libvirt.OptString {
	if s == "" {
		return nil
	}
	return libvirt.OptString{s}
}

// unsupportedReason is the hardware that the host does not support, or else libvirt's error, which has the same code for all reasons.
func (h *Host) unsupportedReason(ctx context.Context, op string, of Hardware, err error) error {
	if !isCode(err, libvirt.ErrInvalidArg) && !isCode(err, libvirt.ErrConfigUnsupported) {
		return err
	}
	caps, e := h.capabilities(ctx)
	if e != nil {
		return err
	}
	if missing := missing(caps, of); missing != nil {
		return h.failed(op, missing)
	}
	return err
}

func missing(caps libvirtxml.Caps, of Hardware) error {
	if of.Arch == "" && caps.Host.CPU != nil {
		of.Arch = caps.Host.CPU.Arch
	}
	var arches, domains, types []string
	has := false
	for _, g := range caps.Guests {
		arches = append(arches, g.Arch.Name)
		if g.OSType != "hvm" || g.Arch.Name != of.Arch {
			continue
		}
		machines := g.Arch.Machines
		for _, d := range g.Arch.Domains {
			domains = append(domains, d.Type)
			if d.Type == of.DomainType && len(d.Machines) > 0 {
				machines = d.Machines
			}
		}
		for _, m := range machines {
			if has = has || m.Name == of.Type; m.Canonical != "" {
				types = append(types, m.Name)
			}
		}
	}
	switch {
	case !slices.Contains(arches, of.Arch):
		return &CannotEmulateError{"arch", of.Arch, sorted(arches)}
	case of.DomainType != "" && !slices.Contains(domains, of.DomainType):
		return &CannotEmulateError{"domain_type", of.DomainType, sorted(domains)}
	case of.Type != "" && !has:
		return &CannotEmulateError{"type", of.Type, sorted(types)}
	}
	return nil
}

func sorted(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

func domainCapabilities(c libvirtxml.DomainCaps) DomainCapabilities {
	able := DomainCapabilities{Hardware: Hardware{Arch: c.Arch, Type: c.Machine, DomainType: c.Domain}}
	if c.VCPU != nil {
		able.MaxVCPUs = c.VCPU.Max
	}
	if c.CPU != nil {
		able.CPUModes, able.CPUModels = processors(c.CPU, c.Domain)
		able.HostModel = hostModel(c.CPU)
	}
	if c.OS != nil {
		able.Firmware = values(c.OS.Enums, "firmware")
		if c.OS.Loader != nil {
			able.SecureBoot = slices.Contains(values(c.OS.Loader.Enums, "secure"), "yes")
		}
	}
	if d := c.Devices; d != nil {
		able.DiskDevices, able.DiskBuses = can(d.Disk, "diskDevice"), can(d.Disk, "bus")
		able.Graphics, able.Video = can(d.Graphics, "type"), can(d.Video, "modelType")
		able.TPMModels, able.TPMBackends = can(d.TPM, "model"), can(d.TPM, "backendModel")
		able.RNGBackends, able.Filesystems = can(d.RNG, "backendModel"), can(d.FileSystem, "driverType")
	}
	return able
}

func processors(c *libvirtxml.DomainCapsCPU, domainType string) (modes, models []string) {
	for _, mode := range c.Modes {
		if mode.Supported != "yes" {
			continue
		}
		modes = append(modes, mode.Name)
		for _, m := range mode.Models {
			if mode.Name == "custom" && (m.Usable != "no" || domainType == "qemu") {
				models = append(models, m.Name)
			}
		}
	}
	return modes, models
}

func can(d *libvirtxml.DomainCapsDevice, what string) []string {
	if d == nil || d.Supported != "yes" {
		return nil
	}
	return values(d.Enums, what)
}

func values(enums []libvirtxml.DomainCapsEnum, name string) []string {
	for _, e := range enums {
		if e.Name == name {
			return e.Values
		}
	}
	return nil
}
