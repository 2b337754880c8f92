// Package guard asks hosts who uses which storage: what really runs or is defined there is the truth. It knows neither
// Terraform nor Kubernetes.
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

// Looker is a host that tells what its domains have.
type Looker interface {
	Volumes
	Domains(ctx context.Context) ([]host.Domain, error)
}

// Host is a host that takes devices, and media, out of its domains, too.
type Host interface {
	Looker
	Unplugger
	DetachStored(ctx context.Context, uuid, deviceXML string) error
	ChangeStoredMedium(ctx context.Context, uuid, deviceXML string) error
}

// Use is a device of a domain, virtclaim's or not, that has an image in its chain.
type Use struct {
	// Host is the host's key; Domain and UUID are the domain's.
	Host, Domain, UUID string
	// Mark is virtclaim's; none in a domain of others.
	Mark domainxml.Mark
	// Device is as the running domain has it, or else as the stored definition does.
	Device domainxml.Attached
	// Depth is the image's place in the chain; 0 is the one that the guest sees.
	Depth int
	// Live tells that the running domain has it, Stored that the stored definition does, Saved that the managed save does,
	// which the domain's next start goes on with.
	Live, Stored, Saved bool

	// Binding is the binding that the domain has the image from, as volume.BindingRef writes it. The stored definition says it: what runs keeps
	// what it was told when the device was plugged in. Empty for local images, and where virtclaim noted none.
	Binding string

	// modes are the access modes under which it has the image: what runs may differ from what the next start will have.
	modes []volume.AccessMode
	// live and stored are the domain's XML.
	live, stored string
	// isCopy tells that the domain is one that makes a clone of the image.
	isCopy bool
}

// Image is what the domain has of the image that was asked for.
func (u Use) Image() volume.Image { return u.Device.Volume.Images[u.Depth] }

// Users lists who uses an image on a host. The generation is left out of account: what names an image's path would open
// whatever is there.
func Users(ctx context.Context, key string, h Looker, image volume.Image) ([]Use, error) {
	domains, err := domainsOf(ctx, h)
	if err != nil {
		return nil, err
	}
	return usersAmong(ctx, key, h, domains, image)
}

func usersAmong(ctx context.Context, key string, h Looker, domains []host.Domain, image volume.Image) (all []Use, err error) {
	image.Generation, image.Hosts = "", []string{key}
	return search{key: key, h: h, isIt: func(i volume.Image) bool {
		i.Generation, i.Hosts = "", []string{key}
		return volume.Overlap(image, i)
	}}.among(ctx, domains)
}

// search looks for the devices of a host's domains that have an image.
type search struct {
	key  string // the host's
	h    Looker
	isIt func(volume.Image) bool
	// noted tells that what a running domain has noted counts, too, where it opens nothing of that.
	noted bool
}

func (s search) among(ctx context.Context, domains []host.Domain) (all []Use, err error) {
	for _, d := range domains {
		if d.IsProbe() {
			continue
		}
		uses, err := s.usesOf(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, uses...)
	}
	return all, nil
}

// usesOf are the devices of one domain that have the image, each once: as it is live, or else as the next start has it.
func (s search) usesOf(ctx context.Context, d host.Domain) (uses []Use, err error) {
	for _, from := range []struct {
		text string
		note func(*Use)
	}{
		{d.Live, func(u *Use) { u.Live = true }},
		{d.Saved, func(u *Use) { u.Saved = true }},
		{d.Stored, func(u *Use) { u.Stored = true }},
	} {
		found, err := s.usesIn(ctx, d, from.text)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			i := slices.IndexFunc(uses, func(u Use) bool { return u.Device.Key == f.Device.Key })
			if i < 0 {
				i = len(uses)
				uses = append(uses, f)
			}
			from.note(&uses[i])
			uses[i].modes = append(uses[i].modes, f.Image().AccessMode)
			uses[i].Binding = f.Image().Binding
		}
	}
	return uses, nil
}

func (s search) usesIn(ctx context.Context, d host.Domain, text string) (found []Use, err error) {
	if text == "" {
		return nil, nil
	}
	attached, mark, err := domainxml.AttachedTo(text)
	if err != nil {
		return nil, fmt.Errorf("domain %s on host %s: %w", d.Name, s.key, err)
	}
	_, isCopy, err := domainxml.ParseJournal(text)
	if err != nil {
		return nil, fmt.Errorf("domain %s on host %s: %w", d.Name, s.key, err)
	}
	for _, a := range attached {
		if d.Live == "" || s.noted {
			a.Volume.Images = slices.Concat(a.Volume.Images, a.Noted)
		}
		a.Volume.Images = a.Volume.Uses()
		for depth, i := range a.Volume.Images {
			if i.Type == "volume" {
				i, err = located(ctx, s.h, i)
				if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrNoPool) && d.Live == "" {
					continue // there is nothing to be used, and nothing that the domain could be started with
				}
				if err != nil {
					return nil, fmt.Errorf("what disk %s of domain %s on host %s is: %w", a.Key, d.Name, s.key, err)
				}
			}
			if s.isIt(i) {
				found = append(found, Use{
					Host: s.key, Domain: d.Name, UUID: d.UUID, Mark: mark, Device: a, Depth: depth, live: d.Live, stored: d.Stored, isCopy: isCopy,
				})
				break
			}
		}
	}
	return found, nil
}
