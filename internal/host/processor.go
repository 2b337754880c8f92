package host

import (
	"context"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Processor is the best named processor that a host gives to guests of its default domain type: what libvirt calls host-model.
type Processor struct {
	Model, Vendor string
	// Features are all that the guest has, also those of the model, sorted.
	Features []string
}

// Processor queries the processor. It is empty if libvirt has none for the host's architecture, or can't list its features.
func (h *Host) Processor(ctx context.Context) (Processor, error) {
	caps, err := h.DomainCapabilities(ctx, Hardware{})
	if err != nil || caps.HostModel == "" {
		return Processor{}, err
	}
	return call(ctx, h, "ask for the features of the processor", func(l *libvirt.Libvirt) (Processor, error) {
		text, err := l.ConnectBaselineHypervisorCPU(nil, optional(caps.Arch), optional(caps.Type), optional(caps.DomainType),
			[]string{caps.HostModel}, uint32(libvirt.ConnectBaselineCPUExpandFeatures))
		if isCode(err, libvirt.ErrNoSupport) || isCode(err, libvirt.ErrArgumentUnsupported) {
			return Processor{}, nil
		}
		if err != nil {
			return Processor{}, err
		}
		return parseProcessor(text)
	})
}

func parseProcessor(text string) (Processor, error) {
	var cpu libvirtxml.DomainCPU
	if err := cpu.Unmarshal(text); err != nil {
		return Processor{}, err
	}
	p := Processor{Vendor: cpu.Vendor}
	if cpu.Model != nil {
		p.Model = cpu.Model.Value
	}
	for _, f := range cpu.Features {
		if f.Policy != "disable" && f.Policy != "forbid" {
			p.Features = append(p.Features, f.Name)
		}
	}
	slices.Sort(p.Features)
	return p, nil
}

// hostModel is the cpu element of the mode host-model as libvirt compares it with others; empty if it has none.
func hostModel(c *libvirtxml.DomainCapsCPU) string {
	for _, mode := range c.Modes {
		if mode.Name != "host-model" || mode.Supported != "yes" || len(mode.Models) == 0 {
			continue
		}
		cpu := libvirtxml.DomainCPU{
			Mode: "custom", Match: "exact", Vendor: mode.Vendor,
			Model: &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: mode.Models[0].Name},
		}
		for _, f := range mode.Features {
			cpu.Features = append(cpu.Features, libvirtxml.DomainCPUFeature(f))
		}
		if text, err := cpu.Marshal(); err == nil {
			return text
		}
	}
	return ""
}
