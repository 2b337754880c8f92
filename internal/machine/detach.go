package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// detached is what was unplugged from a guest: the keys of disks, and the MAC addresses of interfaces.
type detached struct{ disks, macs []string }

// detach unplugs from the running domain what want does not have, or has as another volume or device, and returns it after that. The medium
// of a drive is ejected. If the guest does not acknowledge an unplug, the devices unplugged before are removed from the stored definition
// as well.
func (m Manager) detach(ctx context.Context, uuid string, live *domainxml.Domain,
	want domainxml.Machine,
) (now *domainxml.Domain, gone detached, err error) {
	if err = m.detachDisks(ctx, uuid, live, want, &gone); err == nil {
		err = m.detachInterfaces(ctx, uuid, live, want, &gone)
	}
	if err != nil {
		return nil, gone, m.storeDetached(ctx, uuid, gone, err)
	}
	if len(gone.disks)+len(gone.macs) > 0 {
		live, err = m.readLive(ctx, uuid)
	}
	return live, gone, err
}

// explain adds to the error of an update which disks were unplugged for others that the guest did not get.
func (gone detached) explain(want domainxml.Machine, cause error) error {
	keys := slices.DeleteFunc(slices.Clone(gone.disks), func(key string) bool { return len(want.Disks[key].Volume.Images) == 0 })
	if len(keys) == 0 {
		return cause
	}
	return fmt.Errorf("%w\n\nAlready unplugged: %s. Apply again, which goes on from there; to have back what the machine had there, "+
		"apply the previous configuration",
		cause, strings.Join(keys, ", "))
}

func (m Manager) detachDisks(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine, gone *detached) error {
	keys := live.DisksToDetach(want)
	if len(keys) == 0 {
		return nil
	}
	if err := m.checkStorage(ctx, uuid, want, replacements(live, want, keys)); err != nil {
		return err
	}
	for _, key := range keys {
		limited, done := m.unplugging(ctx, want.Name, "disk "+key)
		err := guard.Unplug(limited, m.host, uuid, live, key)
		done()
		if err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
		gone.disks = append(gone.disks, key)
	}
	return nil
}

// replacements are the keys of disks that are unplugged because the machine gets another volume in their place, unless it already has
// that volume under another key.
func replacements(live *domainxml.Domain, want domainxml.Machine, keys []string) []string {
	attached := live.Attached()
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		images := want.Disks[key].Volume.Images
		return len(images) == 0 || slices.ContainsFunc(attached, func(a domainxml.Attached) bool {
			return a.Key != key && len(a.Volume.Images) > 0 && a.Volume.Images[0].Type == images[0].Type &&
				a.Volume.Images[0].Name == images[0].Name
		})
	})
}

// detachInterfaces unplugs the interfaces that want does not have, or has as other devices.
func (m Manager) detachInterfaces(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine, gone *detached) error {
	todo, err := live.DiffInterfaces(want)
	if err != nil {
		return err
	}
	for _, w := range todo.Unplug {
		limited, done := m.unplugging(ctx, want.Name, "interface "+w.Key)
		err := m.host.Detach(limited, uuid, w.Element, func(live string) (bool, error) {
			has, err := domainxml.HasInterface(live, w.Key, want)
			return !has, err
		})
		done()
		if err != nil {
			return fmt.Errorf("interface %s: %w", w.Key, err)
		}
		gone.macs = append(gone.macs, w.MAC)
	}
	return nil
}

// storeDetached removes unplugged devices from the stored definition, also after the operation's timeout. If that fails, because the host
// does not answer, the next plan shows drift.
func (m Manager) storeDetached(ctx context.Context, uuid string, gone detached, cause error) error {
	var away *host.UnreachableError
	if len(gone.disks)+len(gone.macs) == 0 || errors.As(cause, &away) {
		return cause
	}
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	stored, err := m.ReadStored(ctx, uuid)
	if err != nil {
		return cause
	}
	text, err := stored.WithoutDevices(gone.disks, gone.macs)
	if err == nil {
		_, err = m.host.Define(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("%w\n\nLeft behind: the stored definition still has the devices that the guest has released: %w", cause, err)
	}
	return cause
}
