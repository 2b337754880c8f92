package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// About describes a host.
type About struct {
	// Name is the host's own name, UUID is libvirt's identifier of the host.
	Name, UUID string
	// Architecture is libvirt's name of it; CPUModel is empty if libvirt has no name for the model.
	Architecture, CPUModel string
	// Libvirt and Hypervisor are the versions of libvirt and of QEMU.
	Libvirt, Hypervisor string
	// CPUs is the number of online processors, Memory is in bytes.
	CPUs, Memory int64
	// Guests are the guest capabilities, by architecture.
	Guests map[string]Guest
}

// Guest are the capabilities for guests of one architecture.
type Guest struct {
	// DomainTypes are kvm, or qemu for emulation; Machines are QEMU's machine types with their aliases. Both are sorted.
	DomainTypes, Machines []string
}

// About queries the host's description.
func (h *Host) About(ctx context.Context) (About, error) {
	caps, err := h.capabilities(ctx)
	if err != nil {
		return About{}, err
	}
	a := About{UUID: caps.Host.UUID, Guests: guests(caps)}
	if cpu := caps.Host.CPU; cpu != nil {
		a.Architecture, a.CPUModel = cpu.Arch, cpu.Model
	}
	err = do(ctx, h, "ask what the host is", func(l *libvirt.Libvirt) error {
		var err error
		if a.Name, err = l.ConnectGetHostname(); err != nil {
			return err
		}
		_, memory, cpus, _, _, _, _, _, err := l.NodeGetInfo()
		if err != nil {
			return err
		}
		a.CPUs, a.Memory = int64(cpus), int64(memory)<<10
		own, err := l.ConnectGetLibVersion()
		if err != nil {
			return err
		}
		qemu, err := l.ConnectGetVersion()
		a.Libvirt, a.Hypervisor = version(own), version(qemu)
		return err
	})
	return a, err
}

// version formats libvirt's number, 1,000,000 × major + 1,000 × minor + release.
func version(number uint64) string {
	return fmt.Sprintf("%d.%d.%d", number/1_000_000, number/1000%1000, number%1000)
}

func guests(caps libvirtxml.Caps) map[string]Guest {
	found := map[string]Guest{}
	for _, g := range caps.Guests {
		if g.OSType != "hvm" {
			continue
		}
		var is Guest
		machines := g.Arch.Machines
		for _, d := range g.Arch.Domains {
			is.DomainTypes = append(is.DomainTypes, d.Type)
			machines = append(machines, d.Machines...)
		}
		for _, m := range machines {
			is.Machines = append(is.Machines, m.Name)
		}
		slices.Sort(is.DomainTypes)
		slices.Sort(is.Machines)
		is.Machines = slices.Compact(is.Machines)
		found[g.Arch.Name] = is
	}
	return found
}
