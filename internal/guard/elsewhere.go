package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// elsewhereTime is the timeout of a host that is asked whether a machine was migrated to it.
const elsewhereTime = 30 * time.Second

// Elsewhere lists the uses of an image by domains on other hosts than own, as after virsh migrate: if hosts share the folder of a pool, the
// guest continues to use the file there. A domain uses the image if its metadata, which migrate with it, name the image, because a path is
// another file on each host; or if it is a domain of here, the uses on the own hosts, that runs there.
//
// A host that does not answer is an error only if a domain of here is off because it was migrated. Such a domain is also an error if it has
// not ended on another host.
func (all Hosts) Elsewhere(ctx context.Context, own []string, image volume.Image, here []Use) (found []Use, err error) {
	if len(all.Keys) == 0 {
		return nil, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	var mu sync.Mutex
	var unanswered []error
	var group errgroup.Group
	for _, key := range all.Keys {
		if slices.Contains(own, key) {
			continue
		}
		group.Go(func() error {
			uses, err := all.migrated(waitCtx, key, image, here)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, uses...)
			if err != nil {
				unanswered = append(unanswered, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are collected by host
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(found) > 0 {
		slices.SortFunc(found, func(u, v Use) int { return cmp.Compare(u.Host+" "+u.Domain, v.Host+" "+v.Domain) })
		return found, nil
	}
	return nil, all.checkEnded(ctx, here, errors.Join(unanswered...))
}

// migrated lists the uses on one host.
func (all Hosts) migrated(ctx context.Context, key string, image volume.Image, here []Use) (found []Use, err error) {
	h, err := all.Host(key)
	if err != nil {
		return nil, err
	}
	domains, err := domainsOf(ctx, h)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		uses, err := search{key: key, h: h, isIt: isGiven(image), noted: true}.among(ctx, []host.Domain{d})
		if err != nil {
			return found, err
		}
		uses = slices.DeleteFunc(uses, func(u Use) bool { return u.Metadata.Phase == "" }) // copied metadata do not count
		at := slices.IndexFunc(here, func(u Use) bool { return u.UUID == d.UUID && !u.isCopy })
		if len(uses) == 0 && at >= 0 && !here[at].Live && d.Live != "" {
			moved := here[at]
			if moved.live, err = domainxml.Read(d.Live); err != nil {
				return found, fmt.Errorf("domain %s on host %s: %w", d.Name, key, err)
			}
			moved.Host, moved.Live, moved.Saved = key, true, false
			uses = []Use{moved}
		}
		if d.Live == "" && d.Saved == "" && len(uses) > 0 { // it may be left from an earlier migration
			is, err := h.State(ctx, d.UUID)
			if err != nil && !errors.Is(err, host.ErrNotFound) {
				return found, err
			}
			if err != nil || is.Reason == host.ReasonMigrated || at >= 0 && here[at].Live {
				continue
			}
		}
		found = append(found, uses...)
	}
	return found, nil
}

// isGiven reports whether an image that a domain of another host has is this image, by the identity or binding in its metadata. A file at
// another path whose metadata are for other hosts is a copy, because a migrated domain keeps the metadata of its source host.
func isGiven(image volume.Image) func(volume.Image) bool {
	id := volume.ParseBinding(image.Binding).ID
	return func(i volume.Image) bool {
		if image.Generation != "" && i.Generation != "" {
			isNotedHere := len(i.Hosts) == 0 || slices.ContainsFunc(image.Hosts, func(key string) bool { return slices.Contains(i.Hosts, key) })
			return !volume.IsRemade(image, i) && (isNotedHere || path.Clean(i.Name) == path.Clean(image.Name))
		}
		i.Hosts = image.Hosts
		return id != "" && volume.ParseBinding(i.Binding).ID == id && volume.Overlap(image, i)
	}
}

// CheckTaken is ErrInUse for storage that a machine of a host is about to get while a guest uses it on a host where it may not be used, as
// after virsh migrate. Acquire queries the hosts of the storage. A host that does not answer is ignored, because otherwise each new machine
// would depend on all hosts.
func (all Hosts) CheckTaken(ctx context.Context, own string, disks []volume.Image) error {
	if len(disks) == 0 || len(all.Keys) < 2 {
		return nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	found := make([]error, len(all.Keys))
	var group errgroup.Group
	for n, key := range all.Keys {
		if key == own {
			continue
		}
		group.Go(func() error {
			h, err := all.Host(key)
			if err != nil {
				return nil //nolint:nilerr // it tells nothing
			}
			domains, err := domainsOf(waitCtx, h)
			if err != nil {
				return nil //nolint:nilerr // it tells nothing
			}
			uses, err := search{key: key, h: h, noted: true, isIt: func(i volume.Image) bool {
				return slices.ContainsFunc(disks, func(d volume.Image) bool { return !slices.Contains(d.Hosts, key) && isGiven(d)(i) })
			}}.among(waitCtx, domains)
			at := slices.IndexFunc(uses, func(u Use) bool { return u.Metadata.Phase != "" && (u.Live || u.Saved) })
			if err == nil && at >= 0 {
				found[n] = uses[at].refusalElsewhere(uses[at].Image())
			}
			return nil
		})
	}
	_ = group.Wait() // errors of hosts are ignored
	return errors.Join(append(found, ctx.Err())...)
}

// checkEnded is an error if a domain is off because it was migrated and no host shows that it has ended: it may still run.
func (all Hosts) checkEnded(ctx context.Context, here []Use, unanswered error) error {
	for _, u := range here {
		runs := slices.ContainsFunc(here, func(v Use) bool { return v.UUID == u.UUID && v.Live })
		if runs || u.isCopy {
			continue
		}
		is, err := all.state(ctx, u.Host, u.UUID)
		if err != nil && !errors.Is(err, host.ErrNotFound) {
			return err
		}
		if err != nil || is.Reason != host.ReasonMigrated {
			continue
		}
		off := fmt.Sprintf("domain %s, which has it, is off on host %s because it was migrated", u.Domain, u.Host)
		if unanswered != nil {
			return fmt.Errorf("%w, perhaps: %s, and a host that may run it does not answer: %w. Apply again when it does, or remove a host that is gone "+
				"for good from hosts", ErrInUse, off, unanswered)
		}
		if _, ended, _ := MigratedTo(ctx, all, u.Host, u.UUID, false); !ended {
			return fmt.Errorf("%w, perhaps: %s, and %s", ErrInUse, off, Vanished(u.Domain))
		}
	}
	return nil
}

// CheckElsewhere is ErrInUse for an image that a machine uses on another host than own, to which it was migrated, or on two of the own
// hosts. Uses for which isIndependent is true are ignored, because they do not depend on the image; nil ignores none.
func (all Hosts) CheckElsewhere(ctx context.Context, own []string, image volume.Image, here []Use, isIndependent func(Use) bool) error {
	found, err := all.Elsewhere(ctx, own, image, here)
	for _, u := range found {
		if isIndependent == nil || !isIndependent(u) {
			err = errors.Join(err, u.refusalElsewhere(image))
		}
	}
	for _, u := range here {
		at := slices.IndexFunc(here, func(v Use) bool { return v.UUID == u.UUID && v.Host != u.Host && !v.isCopy })
		if at >= 0 && u.Live && !u.isCopy && (isIndependent == nil || !isIndependent(u)) {
			err = errors.Join(err, u.refusalOfBoth(image, here[at].Host))
		}
	}
	return err
}

// refusalOfBoth is the error of a domain that runs on one host and is also defined on another one, as after a migration.
func (u Use) refusalOfBoth(image volume.Image, defined string) error {
	return fmt.Errorf("%w: domain %s, which has %s, was migrated: host %s runs it, and host %s has its definition. If its configuration says host = %q, "+
		"remove the definition that is left on host %s: %s. Otherwise migrate it back, or %s", ErrInUse, u.Domain, image.Name, u.Host, defined, u.Host, defined,
		UndefineLeft(u.Domain), Adopt(u.Host))
}

func (u Use) refusalElsewhere(image volume.Image) error {
	has, left := "runs it", ""
	if !u.Live {
		has = "has its definition"
		left = " If only the definition was left there, remove that: " + UndefineLeft(u.Domain) + "."
	}
	return fmt.Errorf("%w: domain %s, which has %s, was migrated: host %s %s.%s Migrate it back, or %s", ErrInUse, u.Domain, image.Name, u.Host, has, left,
		Adopt(u.Host))
}
