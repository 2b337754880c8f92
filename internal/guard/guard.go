// Package guard queries hosts for the domains that use some storage: running and defined domains are the only source. It depends
// neither on Terraform nor on Kubernetes.
package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Looker is a host that lists its domains with their disks.
type Looker interface {
	Volumes
	Domains(ctx context.Context) ([]host.Domain, error)
}

// Host is a host that also detaches devices and media from its domains.
type Host interface {
	Looker
	Unplugger
	DetachStored(ctx context.Context, uuid, deviceXML string) error
	ChangeStoredMedium(ctx context.Context, uuid, deviceXML string) error
}

// Use is a device of a domain, managed by virtclaim or not, that has an image in its chain.
type Use struct {
	// Host is the host's key; Domain and UUID are the domain's.
	Host, Domain, UUID string
	// Metadata is virtclaim's metadata; empty in an unmanaged domain.
	Metadata domainxml.Metadata
	// Device is that of the running domain, or else that of the stored definition.
	Device domainxml.Attached
	// Depth is the image's place in the chain; 0 is the one that the guest sees.
	Depth int
	// Live tells whether the running domain has it, Stored whether the stored definition does, Saved whether the managed save does, which
	// the domain's next start restores.
	Live, Stored, Saved bool

	// Binding is the binding of the image in the domain's metadata, as volume.BindingRef formats it. It is that of the stored definition,
	// because a running domain keeps the one with which the device was plugged in. Empty for local images and without metadata.
	Binding string

	// modes are the access modes under which it has the image: the running domain's may differ from that of the next start.
	modes []volume.AccessMode
	// live and stored are the domain as it runs and as it is stored; nil where it is not.
	live, stored *domainxml.Domain
	// isCopy tells whether the domain is the journal of a clone of the image, or of what fills it.
	isCopy bool
}

// isFilling reports whether the domain writes the image, or was interrupted.
func (u Use) isFilling() bool { return u.isCopy && u.Depth == 0 }

const untilFilled = "Wait until that is done; if it was interrupted, apply the configuration of that virtclaim_volume_content again, by " +
	"the same host"

// Image is the image in the domain's chain.
func (u Use) Image() volume.Image { return u.Device.Volume.Images[u.Depth] }

// Users lists the uses of an image on a host. The generation is ignored, because a domain that names the path opens any file there.
func Users(ctx context.Context, key string, h Looker, image volume.Image) ([]Use, error) {
	domains, err := List(ctx, h)
	if err != nil {
		return nil, err
	}
	return UsersAmong(ctx, key, h, domains, image)
}

// UsersAmong is Users among listed domains.
func UsersAmong(ctx context.Context, key string, h Looker, domains []domainxml.Definitions, image volume.Image) (all []Use, err error) {
	image.Generation, image.Hosts = "", []string{key}
	return search{key: key, h: h, image: image, isIt: func(i volume.Image) bool {
		i.Generation, i.Hosts = "", []string{key}
		return volume.Overlap(image, i)
	}}.among(ctx, domains)
}

// search finds the devices of a host's domains that have an image.
type search struct {
	key   string // the host's
	h     Looker
	image volume.Image
	isIt  func(volume.Image) bool
}

func (s search) among(ctx context.Context, domains []domainxml.Definitions) (all []Use, err error) {
	for _, d := range domains {
		uses, err := s.usesOf(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, uses...)
	}
	return all, nil
}

// usesOf are the devices of one domain that have the image, each once: as in the running domain, or else as at its next start.
func (s search) usesOf(ctx context.Context, d domainxml.Definitions) (uses []Use, err error) {
	for _, from := range []struct {
		domain *domainxml.Domain
		note   func(*Use)
	}{
		{d.Live, func(u *Use) { u.Live = true }},
		{d.Saved, func(u *Use) { u.Saved = true }},
		{d.Stored, func(u *Use) { u.Stored = true }},
	} {
		found, err := s.usesIn(ctx, d, from.domain)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			i := slices.IndexFunc(uses, func(u Use) bool {
				return u.Device.Key == f.Device.Key && u.Device.IsFolder() == f.Device.IsFolder()
			})
			if i < 0 {
				i = len(uses)
				f.live, f.stored = d.Live, d.Stored
				uses = append(uses, f)
			}
			from.note(&uses[i])
			if uses[i].Reads() && f.Reads() {
				uses[i].modes = nil // a running domain keeps the mode with which the device was plugged in, and wrote nothing under it
			}
			uses[i].modes = append(uses[i].modes, f.Image().AccessMode)
			uses[i].Binding = f.Image().Binding
		}
	}
	return uses, nil
}

func (s search) usesIn(ctx context.Context, d domainxml.Definitions, from *domainxml.Domain) (found []Use, err error) {
	if from == nil {
		return nil, nil
	}
	_, isCopy, err := from.Journal()
	if err != nil && from.Newer() == nil {
		return nil, fmt.Errorf("domain %s on host %s: %w", d.Name, s.key, err)
	}
	for _, a := range from.Attached() {
		if d.Live == nil {
			a.Volume.Images = slices.Concat(a.Volume.Images, a.Noted)
		}
		a.Volume.Images = a.Volume.Uses()
		for depth, i := range a.Volume.Images {
			if i.Type == "volume" {
				i, err = located(ctx, s.h, i)
				if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrNoPool) && d.Live == nil {
					continue // the domain does not have the file open, and could not be started with it
				}
				if err != nil {
					return nil, fmt.Errorf("what disk %s of domain %s on host %s is: %w", a.Key, d.Name, s.key, err)
				}
			}
			if s.isIt(i) {
				found = append(found, Use{
					Host: s.key, Domain: d.Name, UUID: d.UUID, Metadata: from.Metadata(), Device: a, Depth: depth, isCopy: isCopy,
				})
				break
			}
		}
	}
	if err := from.Newer(); err != nil && (len(found) > 0 || from.MayReference(s.image)) { // an unknown holder, in an unknown mode
		return nil, fmt.Errorf("%w: domain %s on host %s may use the same storage: %w", ErrInUse, d.Name, s.key, err)
	}
	return found, nil
}
