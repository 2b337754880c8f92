package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// leave takes from the machine what can't go along or is not wanted any more, and makes it virtclaim's if it was imported just now. It
// returns the machine that moves.
func (p *pair) leave(ctx context.Context, has found, want domainxml.Machine, offline bool) (at Observation, is domainxml.Machine,
	err error,
) {
	at = has.source
	if at.stored == nil {
		return at, is, fmt.Errorf("host %s does not have it any more, and host %s was only prepared for it: %w", p.from.key, p.to.key,
			host.ErrNotFound)
	}
	if is, err = at.machine(); err != nil {
		return at, is, err
	}
	goes, stays := p.goes(is, want)
	if len(stays) == 0 && at.stored.Metadata().Phase == domainxml.Ready {
		return at, goes, nil
	}
	_, pending, _, err := p.from.Update(ctx, p.uuid, goes, Power{On: at.live != nil})
	pending = slices.DeleteFunc(pending, func(what string) bool { return !slices.Contains(stays, what) })
	if err == nil && len(pending) > 0 && !offline {
		err = fmt.Errorf("its guest has to release this before it moves: %s. Or move it with migration = { mode = \"offline\" }",
			strings.Join(pending, ", "))
	}
	if err == nil {
		at, err = p.from.see(ctx, p.uuid)
	}
	return at, goes, err
}

// goes is the machine without the disks, media and filesystems that stay behind, as changes that may be pending. Volumes that both know are
// as the configuration has them: a binding may have got the target just now.
func (p *pair) goes(is, want domainxml.Machine) (goes domainxml.Machine, stays []string) {
	goes = is
	goes.Disks, goes.Filesystems = map[string]domainxml.Disk{}, map[string]domainxml.Filesystem{}
	for key, d := range is.Disks {
		w, wanted := want.Disks[key]
		if wanted && volume.SameImages(d.Volume, w.Volume) {
			d.Volume = w.Volume
		}
		if !wanted {
			stays = append(stays, "disk "+key)
			continue
		}
		if volume.IsPair(d.Volume, w.Volume, p.from.key, p.to.key) {
			p.there.Volumes[key], goes.Disks[key] = w.Volume, d
			if d.Volume.Images[0].AccessMode != volume.ReadShared {
				p.along = append(p.along, key)
			}
			continue
		}
		if domainxml.IsDrive(d.Device) && len(d.Volume.Images) > 0 && !canOpen(d.Volume, p.to.key) { // the target has it as another file
			d.Volume, stays = volume.Volume{}, append(stays, "disk "+key)
		}
		goes.Disks[key] = d
	}
	slices.Sort(p.along)
	if is.Boot != nil && want.Boot != nil && (is.Boot.Kernel != want.Boot.Kernel || is.Boot.Initrd != want.Boot.Initrd) {
		p.there.Kernel, p.there.Initrd = want.Boot.Kernel, want.Boot.Initrd
	}
	if len(want.FWCfg) > 0 && !maps.Equal(is.FWCfg, want.FWCfg) {
		p.there.FWCfg = want.FWCfg
	}
	for key, f := range is.Filesystems {
		if _, wanted := want.Filesystems[key]; wanted {
			goes.Filesystems[key] = f
			continue
		}
		stays = append(stays, "filesystems")
	}
	return goes, stays
}

// check refuses what would be lost by a move, or stop it.
func (p pair) check(ctx context.Context, at Observation, is domainxml.Machine) error {
	there := p.asThere(is)
	for _, key := range slices.Sorted(maps.Keys(is.Disks)) {
		for side, m := range map[string]domainxml.Machine{p.from.key: is, p.to.key: there} {
			if !canOpen(m.Disks[key].Volume, side) {
				return fmt.Errorf("its disk %s is not there for host %s", key, side)
			}
		}
	}
	for _, f := range at.stored.StateFolders() {
		if !strings.HasPrefix(f.Path, "/var/lib/libvirt/") {
			return fmt.Errorf("its firmware's variables are in %s, which both hosts may share. Put them where libvirt does by itself "+
				"(/var/lib/libvirt/qemu/nvram)", f.Path)
		}
	}
	if err := p.from.checkChains(ctx, p.uuid, at, is, false); err != nil {
		return err
	}
	var saved string
	var snapshots []string
	var other string
	var group errgroup.Group
	group.Go(func() (err error) { saved, err = p.from.host.SavedXML(ctx, p.uuid); return err })
	group.Go(func() (err error) { snapshots, err = p.from.host.Snapshots(ctx, p.uuid); return err })
	group.Go(func() (err error) {
		if other, err = p.to.host.LookupByName(ctx, is.Name); errors.Is(err, host.ErrNotFound) {
			other, err = p.uuid, nil
		}
		return err
	})
	err := group.Wait()
	if err == nil && saved != "" && at.live == nil {
		return fmt.Errorf("its guest is saved with its memory (virsh managedsave) on host %s, and that can't be moved. Start it there "+
			"before, or give up what its memory had: virsh managedsave-remove %s", p.from.key, is.Name)
	}
	if err != nil {
		return err
	}
	if len(snapshots) > 0 {
		return fmt.Errorf("it has snapshots on host %s, which can't be moved. Delete them before (virsh snapshot-list %s)", p.from.key,
			is.Name)
	}
	if other != p.uuid {
		return fmt.Errorf("host %s has another domain of the name %s (UUID %s). Rename or remove one of the two", p.to.key, is.Name, other)
	}
	return p.to.checkLogs(ctx, domainxml.Machine{}, is)
}
