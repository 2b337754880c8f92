package host

import (
	"context"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// Domain is all that a host tells of a domain.
type Domain struct {
	Name, UUID string
	// Stored is the stored definition; empty for a transient domain.
	Stored string
	// Live is what runs; empty for a domain that is off.
	Live string
	// Saved is what ran when a domain that is off was saved with its memory (virsh managedsave, or libvirt-guests when the
	// host was shut down). Its next start goes on with that, whatever the stored definition says by then.
	Saved string
}

// IsProbe reports whether it is a domain that virtclaim defines for a moment to find out something of the host. No guest runs in it.
func (d Domain) IsProbe() bool {
	return d.Stored == "" && strings.HasPrefix(d.Name, MeasurePrefix) ||
		d.Live == "" && (strings.HasPrefix(d.Name, lookPrefix) || strings.HasPrefix(d.Name, folderPrefix))
}

// Domains lists every domain of the host, virtclaim's and others, running or not.
func (h *Host) Domains(ctx context.Context) ([]Domain, error) {
	return call(ctx, h, "list the domains", func(l *libvirt.Libvirt) ([]Domain, error) {
		all, _, err := l.ConnectListAllDomains(1, 0)
		if err != nil {
			return nil, err
		}
		var found []Domain
		for _, d := range all {
			domain, err := describeDomain(l, d)
			if isCode(err, libvirt.ErrNoDomain) {
				continue // it has just gone
			}
			if err != nil {
				return nil, err
			}
			found = append(found, domain)
		}
		return found, nil
	})
}

func describeDomain(l *libvirt.Libvirt, d libvirt.Domain) (shown Domain, err error) {
	shown = Domain{Name: d.Name, UUID: uuid.UUID(d.UUID).String()}
	active, err := l.DomainIsActive(d)
	if err != nil {
		return shown, err
	}
	persistent, err := l.DomainIsPersistent(d)
	if err != nil {
		return shown, err
	}
	if active != 0 {
		if shown.Live, err = l.DomainGetXMLDesc(d, 0); err != nil {
			return shown, err
		}
	}
	if persistent == 0 {
		return shown, nil
	}
	if shown.Stored, err = l.DomainGetXMLDesc(d, libvirt.DomainXMLInactive); err != nil || active != 0 {
		return shown, err
	}
	shown.Saved, err = saved(l, d, 0)
	if isCode(err, libvirt.ErrOperationInvalid) {
		return describeDomain(l, d) // it has just been started
	}
	return shown, err
}

// saved is the definition in the managed save of a domain; empty without one.
func saved(l *libvirt.Libvirt, d libvirt.Domain, flags libvirt.DomainXMLFlags) (string, error) {
	has, err := l.DomainHasManagedSaveImage(d, 0)
	if err != nil || has == 0 {
		return "", err
	}
	return l.DomainManagedSaveGetXMLDesc(d, flags)
}
