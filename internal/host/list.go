package host

import (
	"context"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// Domain is a domain with its definitions, as the host lists it.
type Domain struct {
	Name, UUID string
	// Stored is the stored definition; empty for a transient domain.
	Stored string
	// Live is the XML of the running domain; empty for a domain that is off.
	Live string
	// Saved is the XML of the managed save of a domain that is off (virsh managedsave, or libvirt-guests when the host was shut down). Its
	// next start restores that, whatever the stored definition is by then.
	Saved string
}

// IsProbe reports whether it is a temporary domain with which virtclaim queries the host. No guest runs in it.
func (d Domain) IsProbe() bool {
	return d.Stored == "" && strings.HasPrefix(d.Name, MeasurePrefix) ||
		d.Live == "" && (strings.HasPrefix(d.Name, lookPrefix) || strings.HasPrefix(d.Name, folderPrefix))
}

// Domains lists all domains of the host, managed or not, running or not.
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
				continue // it was undefined meanwhile
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
		return describeDomain(l, d) // it was started meanwhile
	}
	return shown, err
}

// saved returns the definition in the managed save of a domain; empty without one.
func saved(l *libvirt.Libvirt, d libvirt.Domain, flags libvirt.DomainXMLFlags) (string, error) {
	has, err := l.DomainHasManagedSaveImage(d, 0)
	if err != nil || has == 0 {
		return "", err
	}
	return l.DomainManagedSaveGetXMLDesc(d, flags)
}
