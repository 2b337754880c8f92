package lab

import (
	"context"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// inventory lists the objects on the host.
func (h *Host) inventory(ctx context.Context) ([]string, error) {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer disconnect()
	var lines []string
	for _, list := range []func(*libvirt.Libvirt) ([]string, error){listDomains, listPools, listSecrets} {
		more, err := list(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		for _, line := range more {
			lines = append(lines, h.Name+": "+line)
		}
	}
	files, err := h.listGuestFiles(ctx)
	return append(lines, files...), err
}

// guestFiles are libvirt's folders of the state of guests beside their disks: the variables of their firmware, and the state of their TPMs,
// in a folder for each domain; and the folder of virtclaim's mounts.
const guestFiles = "/var/lib/libvirt/qemu/nvram /var/lib/libvirt/swtpm /run/libvirt/virtclaim"

// listGuestFiles lists them as root. The list of leftovers is short enough for one response of the sandbox.
func (h *Host) listGuestFiles(ctx context.Context) (lines []string, err error) {
	found, err := h.sandbox.output(ctx, "find "+guestFiles+" -mindepth 1 -maxdepth 1 2>/dev/null || true")
	for path := range strings.Lines(found) {
		lines = append(lines, h.Name+": file "+strings.TrimSpace(path))
	}
	return lines, err
}

// lister is a server that starts on demand and has objects of hosts.
type lister interface {
	closer
	inventory(ctx context.Context) ([]string, error)
}

// listOnDemand lists the objects of a host that starts on demand. Before its start the list is that of an unused host, so that the first
// test that starts it does not seem to leave something.
func listOnDemand[T lister](name string, h *onDemand[T]) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (lines []string, err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.running {
			return h.server.inventory(ctx)
		}
		for _, pool := range pools {
			lines = append(lines, name+": pool "+pool)
		}
		return lines, nil
	}
}

func listDomains(l *libvirt.Libvirt) (lines []string, err error) {
	domains, _, err := l.ConnectListAllDomains(1, 0)
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	for _, d := range domains {
		name := fmt.Sprintf("domain %s (%s)", d.Name, uuid.UUID(d.UUID))
		lines = append(lines, name)
		jobs, err := listJobs(l, d)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		for _, job := range jobs {
			lines = append(lines, job+" of "+name)
		}
	}
	return lines, nil
}

// listJobs finds a domain's own job, such as a save, and those of its disks.
func listJobs(l *libvirt.Libvirt, d libvirt.Domain) (lines []string, err error) {
	active, err := l.DomainIsActive(d)
	if err != nil || active == 0 {
		return nil, err
	}
	kind, _, _, _, _, _, _, _, _, _, _, _, err := l.DomainGetJobInfo(d)
	if err != nil {
		return nil, err
	}
	if libvirt.DomainJobType(kind) != libvirt.DomainJobNone {
		lines = append(lines, "a job")
	}
	text, err := l.DomainGetXMLDesc(d, 0)
	if err != nil {
		return nil, err
	}
	var xml libvirtxml.Domain
	if err := xml.Unmarshal(text); err != nil {
		return nil, err
	}
	if xml.Devices == nil {
		return lines, nil
	}
	for _, disk := range xml.Devices.Disks {
		if disk.Source == nil || disk.Target == nil {
			continue // an empty drive has no job, and libvirt's query for one fails
		}
		found, _, _, _, _, err := l.DomainGetBlockJobInfo(d, disk.Target.Dev, 0)
		if err != nil {
			return nil, err
		}
		if found != 0 {
			lines = append(lines, "a block job on "+disk.Target.Dev)
		}
	}
	return lines, nil
}

func listPools(l *libvirt.Libvirt) (lines []string, err error) {
	pools, _, err := l.ConnectListAllStoragePools(1, 0)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	for _, pool := range pools {
		lines = append(lines, "pool "+pool.Name)
		active, err := l.StoragePoolIsActive(pool)
		if err != nil {
			return nil, fmt.Errorf("look at pool %s: %w", pool.Name, err)
		}
		if active == 0 {
			continue
		}
		volumes, err := listVolumes(l, pool)
		if err != nil {
			return nil, fmt.Errorf("list the volumes of pool %s: %w", pool.Name, err)
		}
		for _, v := range volumes {
			lines = append(lines, fmt.Sprintf("volume %s/%s", pool.Name, v.Name))
		}
	}
	return lines, nil
}

// listVolumes also lists files that libvirt did not create.
func listVolumes(l *libvirt.Libvirt, pool libvirt.StoragePool) ([]libvirt.StorageVol, error) {
	if err := l.StoragePoolRefresh(pool, 0); err != nil {
		return nil, err
	}
	volumes, _, err := l.StoragePoolListAllVolumes(pool, 1, 0)
	return volumes, err
}

func listSecrets(l *libvirt.Libvirt) (lines []string, err error) {
	secrets, _, err := l.ConnectListAllSecrets(1, 0)
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	for _, s := range secrets {
		lines = append(lines, fmt.Sprintf("secret %s (usage %s)", uuid.UUID(s.UUID), s.UsageID))
	}
	return lines, nil
}
