package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// About is what a host is.
type About struct {
	// Name is the host's own, UUID libvirt's for it.
	Name, UUID string
	// Architecture is in libvirt's words; CPUModel is empty where libvirt knows no name for it.
	Architecture, CPUModel string
	// Libvirt and Hypervisor are the versions of libvirt and of QEMU.
	Libvirt, Hypervisor string
	// CPUs are all that are online, Memory is in bytes.
	CPUs, Memory int64
	// Guests are what guests can be, by architecture.
	Guests map[string]Guest
}

// Guest is what guests of an architecture can be.
type Guest struct {
	// DomainTypes are kvm, or qemu for emulation; Machines are QEMU's machine types with their aliases. Both are sorted.
	DomainTypes, Machines []string
}

// About asks the host what it is.
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

// version is one as people write it, of 1,000,000 × major + 1,000 × minor + release.
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
