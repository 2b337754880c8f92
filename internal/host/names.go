package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
)

// SetLiveNames sets the title and description of a running domain, which may be empty; the stored definition is not changed.
func (h *Host) SetLiveNames(ctx context.Context, id, title, description string) error {
	return domainDo(ctx, h, "name domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		for which, text := range map[libvirt.DomainMetadataType]string{
			libvirt.DomainMetadataTitle: title, libvirt.DomainMetadataDescription: description,
		} {
			if err := l.DomainSetMetadata(d, int32(which), optional(text), nil, nil, libvirt.DomainAffectLive); err != nil {
				return err
			}
		}
		return nil
	})
}

// Autostart reports whether the host starts the domain when it boots.
func (h *Host) Autostart(ctx context.Context, id string) (bool, error) {
	return onDomain(ctx, h, "read the autostart of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (bool, error) {
		on, err := l.DomainGetAutostart(d)
		return on != 0, err
	})
}

// Rename gives a domain that is off another name.
func (h *Host) Rename(ctx context.Context, id, name string) error {
	return domainDo(ctx, h, "rename domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		_, err := l.DomainRename(d, libvirt.OptString{name}, 0)
		return err
	})
}

// SetAutostart sets whether the host starts the domain when it boots.
func (h *Host) SetAutostart(ctx context.Context, id string, on bool) error {
	return domainDo(ctx, h, "set the autostart of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		n := int32(0)
		if on {
			n = 1
		}
		return l.DomainSetAutostart(d, n)
	})
}
