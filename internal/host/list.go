package host

import (
	"context"
	"slices"
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
		d.Live == "" && (strings.HasPrefix(d.Name, inspectPrefix) || strings.HasPrefix(d.Name, folderPrefix))
}

// Domains lists all domains of the host, managed or not, running or not. Concurrent callers share a list that begins after they have asked.
func (h *Host) Domains(ctx context.Context) ([]Domain, error) {
	return h.domains.get(ctx, func(ctx context.Context) ([]Domain, error) {
		return callOn(ctx, h, "list the domains", listDomains)
	})
}

// listDomains asks for the states of all domains at once, and for the definitions of each that are not kept. Those are looked for after
// the reply to a call that was sent after the reply to the first one: a proxy (virtproxyd) may send an event after the first reply.
func listDomains(c *conn) ([]Domain, error) {
	all, _, err := c.ConnectListAllDomains(1, 0)
	if err != nil {
		return nil, err
	}
	isFollowed := len(all) > fewObjects && c.definitions.isSubscribed(c.Libvirt)
	transient, saved, err := transientAndSaved(c.Libvirt, all)
	if err != nil {
		return nil, err
	}
	shown, err := pipelined(all, func(d libvirt.Domain) (Domain, error) {
		isSame := func(other libvirt.Domain) bool { return other.UUID == d.UUID }
		of := listed{d, slices.ContainsFunc(transient, isSame), slices.ContainsFunc(saved, isSame)}
		shown, at, isKept := c.definitions.domains.get(d.UUID, of, definitionTrust)
		if isKept {
			return shown, nil
		}
		shown, err := describeDomain(c.Libvirt, of)
		if isCode(err, libvirt.ErrNoDomain) {
			return Domain{}, nil // it was undefined meanwhile
		}
		if err == nil && isFollowed {
			c.definitions.domains.keep(d.UUID, of, shown, at)
		}
		return shown, err
	})
	if err != nil {
		return nil, err
	}
	in := map[libvirt.UUID]bool{}
	for _, d := range all {
		in[d.UUID] = true
	}
	c.definitions.domains.prune(in)
	return slices.DeleteFunc(shown, func(d Domain) bool { return d.UUID == "" }), nil
}

// transientAndSaved are the transient ones of all domains, and those with a managed save.
func transientAndSaved(l *libvirt.Libvirt, all []libvirt.Domain) (transient, saved []libvirt.Domain, err error) {
	in, err := pipelined([]bool{true, false}, func(active bool) (in []libvirt.Domain, err error) {
		if !slices.ContainsFunc(all, func(d libvirt.Domain) bool { return d.ID >= 0 == active }) {
			return nil, nil
		}
		which := libvirt.ConnectListDomainsManagedsave
		if active {
			which = libvirt.ConnectListDomainsTransient
		}
		in, _, err = l.ConnectListAllDomains(1, which)
		return in, err
	})
	return in[0], in[1], err
}

// describeDomain reads the definitions of a listed domain, whose ID is negative while it is off.
func describeDomain(l *libvirt.Libvirt, of listed) (shown Domain, err error) {
	d := of.Domain
	shown = Domain{Name: d.Name, UUID: uuid.UUID(d.UUID).String()}
	if d.ID >= 0 {
		if shown.Live, err = l.DomainGetXMLDesc(d, 0); err != nil || of.transient {
			return shown, err
		}
		if start, _, _ := strings.Cut(shown.Live, ">"); !strings.Contains(start, " id=") { // it has ended meanwhile
			shown.Live = ""
		}
	}
	if shown.Stored, err = l.DomainGetXMLDesc(d, libvirt.DomainXMLInactive); err != nil || !of.saved {
		return shown, err
	}
	shown.Saved, err = saved(l, d, 0)
	if isCode(err, libvirt.ErrOperationInvalid) { // it was started meanwhile
		shown.Live, err = l.DomainGetXMLDesc(d, 0)
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
