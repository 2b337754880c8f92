package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// disksToCheck are the disks that all hosts are asked about: all disks of a machine that starts, otherwise those that are new to it.
func disksToCheck(taken []string, want domainxml.Machine, starts bool) []string {
	if starts {
		return slices.Sorted(maps.Keys(want.Disks))
	}
	return taken
}

// newDisks are the disks of want that was, or the running domain, does not have or has as another volume. live is nil while it is off.
func newDisks(was, want domainxml.Machine, live *domainxml.Domain) []string {
	keys := domainxml.ChangedUses(was, want)
	if live != nil {
		keys = slices.Concat(keys, live.DisksToAttach(want), live.MediaToInsert(want))
		slices.Sort(keys)
	}
	return slices.Compact(keys)
}

// used are the images that these disks open.
func used(want domainxml.Machine, keys []string) (images []volume.Image) {
	for _, key := range keys {
		images = append(images, want.Disks[key].Volume.Uses()...)
	}
	return images
}

// acquire asks all hosts whether the machine may use these disks, which its stored definition has already. Then it asks the machine's host
// whether their files are unchanged since they were bound: a pod may have put a symbolic link in their place.
func (m manager) acquire(ctx context.Context, uuid string, want domainxml.Machine, keys []string) error {
	e := guard.Request{Host: m.key, Name: want.Name, UUID: uuid, Owner: want.Metadata.Owner, Hosts: m.hosts, Images: used(want, keys)}
	if len(e.Images) == 0 {
		return nil
	}
	if err := m.recognize(ctx, want, keys); err != nil {
		return err
	}
	domains, err := guard.Acquire(ctx, e)
	if err != nil {
		return err
	}
	opened := content.OpenedBy(domains)
	if err := content.Recheck(ctx, m.host, e.Images); err != nil {
		return err
	}
	if err := m.checkMasterRecords(ctx, want, keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := m.checkSharers(ctx, uuid, topOf(want.Disks[key].Volume)); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	if err := m.checkMasters(ctx, uuid, opened, want, keys); err != nil {
		return err
	}
	return m.engrave(ctx, opened, want, keys)
}

// checkStorage makes enter's checks of the storage itself, before a machine is shut down for a restart or disks are unplugged that these
// replace. Conflicts with other machines are checked by enter alone, because they may be resolved until then.
func (m manager) checkStorage(ctx context.Context, uuid string, want domainxml.Machine, keys []string) error {
	if err := m.recognize(ctx, want, keys); err != nil {
		return err
	}
	if err := content.Recheck(ctx, m.host, used(want, keys)); err != nil {
		return err
	}
	if err := m.checkMasterRecords(ctx, want, keys); err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	domains, err := guard.List(ctx, m.host)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := guard.CheckCopied(m.key, domains, topOf(want.Disks[key].Volume), uuid); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
		if err := content.CheckOpenMasters(ctx, m.host, want.Disks[key].Volume.Images); err != nil { // otherwise QEMU can't open the disk
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return m.checkMasters(ctx, uuid, content.OpenedBy(domains), want, keys)
}

// checkMasterRecords refuses overlays whose masters were replaced.
func (m manager) checkMasterRecords(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if err := content.CheckMasterRecords(ctx, m.host, want.Disks[key].Volume.Images); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// revertDisks removes disks that the machine may not use from its stored definition, so that no other machine waits for it. It does so
// also after the operation's timeout.
func (m manager) revertDisks(ctx context.Context, uuid string, was, want domainxml.Machine, keys []string, active bool, cause error) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	runs := func(string) bool { return false }
	if active {
		if live, err := m.readLive(ctx, uuid); err == nil { // if the host does not answer, storing the definition fails, too
			runs = live.HasDisk
		}
	}
	disks := maps.Clone(want.Disks)
	for _, key := range keys {
		before, had := was.Disks[key]
		switch {
		case had && len(before.Volume.Images) > 0 && !before.Another(want.Disks[key]):
			disks[key] = before
		case had && len(before.Volume.Images) == 0 && runs(key):
			// The guard admitted it earlier, and an apply that changed it was killed: the guest still has it.
			disk := want.Disks[key]
			disk.Tentative = true
			disks[key] = disk
		case domainxml.IsDrive(want.Disks[key].Device):
			// The drive stays, empty: a domain defined outside of Terraform had it before.
			disk := want.Disks[key]
			disk.Volume = volume.Volume{}
			disks[key] = disk
		default:
			// A former volume is not stored again, because another machine may have it by now. Nor is one that was never admitted.
			delete(disks, key)
		}
	}
	want.Disks = disks
	if err := m.redefine(ctx, uuid, want); err != nil {
		return fmt.Errorf("%w\n\nLeft behind: the stored definition has what was refused already, and could not be put back: %w", cause, err)
	}
	return cause
}
