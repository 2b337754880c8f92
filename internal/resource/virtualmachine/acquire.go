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

// newDisks are the disks of want that was does not have, or has as another volume.
func (m manager) newDisks(ctx context.Context, uuid string, was, want domainxml.Machine, active bool) ([]string, error) {
	keys := domainxml.ChangedUses(was, want)
	if !active {
		return keys, nil
	}
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return keys, err
	}
	keys = slices.Concat(keys, live.DisksToAttach(want), live.MediaToInsert(want))
	slices.Sort(keys)
	return slices.Compact(keys), nil
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
	if err := guard.Acquire(ctx, e); err != nil {
		return err
	}
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
	if err := m.checkMasters(ctx, uuid, want, keys); err != nil {
		return err
	}
	return m.engrave(ctx, want, keys)
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
	for _, key := range keys {
		if err := guard.CheckCopied(ctx, m.key, m.host, topOf(want.Disks[key].Volume), uuid); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
		if err := content.CheckOpenMasters(ctx, m.host, want.Disks[key].Volume.Images); err != nil { // otherwise QEMU can't open the disk
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return m.checkMasters(ctx, uuid, want, keys)
}

// checkRestart makes the checks for a machine that is about to be shut down for a restart.
func (m manager) checkRestart(ctx context.Context, uuid string, want domainxml.Machine) error {
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return err
	}
	if err := m.checkCheckpoints(ctx, uuid, live, func(string) bool { return true }); err != nil {
		return err
	}
	return m.checkStorage(ctx, uuid, want, disksToCheck(nil, want, true))
}

// checkCheckpoints refuses to unplug disks, or to shut the guest down, while bound files that are opened as qcow2 have checkpoints: QEMU
// writes their bitmaps when it closes the file, and a bound file with bitmaps is not opened.
func (m manager) checkCheckpoints(ctx context.Context, uuid string, live *domainxml.Domain, closes func(key string) bool) error {
	attached := slices.DeleteFunc(live.Attached(), func(a domainxml.Attached) bool {
		i := topOf(a.Volume)
		return !closes(a.Key) || i.Type != "file" || i.Format != "qcow2" || i.Binding == ""
	})
	if len(attached) == 0 {
		return nil
	}
	targets, err := m.host.CheckpointedDisks(ctx, uuid)
	if err != nil {
		return err
	}
	for _, a := range attached {
		if slices.Contains(targets, a.Target) {
			return fmt.Errorf("disk %s (%s) has checkpoints, whose bitmaps QEMU writes into %s when it closes it, and a bound file is not opened with "+
				"bitmaps. Delete the checkpoints of that disk before: virsh checkpoint-list and virsh checkpoint-delete, with --metadata if the "+
				"bitmap is not there any more", a.Key, a.Target, a.Volume.Images[0].Name)
		}
	}
	return nil
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
