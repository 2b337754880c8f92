package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// taken are the keys of the disks, and of the filesystems with the folder of a binding, that a machine takes.
type taken struct{ disks, folders []string }

func (t taken) isEmpty() bool { return len(t.disks)+len(t.folders) == 0 }

// devicesToCheck are those that all hosts are asked about: all of a machine that starts, otherwise those that are new to it.
func devicesToCheck(gained taken, want domainxml.Machine, starts bool) taken {
	if starts {
		return taken{slices.Sorted(maps.Keys(want.Disks)), want.BoundFolders()}
	}
	return gained
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

// acquire asks all hosts whether the machine may use these devices, which its stored definition has already. Then it asks the machine's
// host whether the files of disks are unchanged since they were bound: a pod may have put a symbolic link in their place.
func (m Manager) acquire(ctx context.Context, uuid string, want domainxml.Machine, devices taken) error {
	keys := devices.disks
	e := guard.Request{Host: m.key, Name: want.Name, UUID: uuid, Owner: want.Metadata.Owner, Hosts: m.hosts, Images: used(want, keys)}
	for _, key := range devices.folders {
		e.Images = append(e.Images, want.Filesystems[key].Volume.Images...)
	}
	if len(e.Images) == 0 {
		return nil
	}
	if err := m.recognize(ctx, want, keys); err != nil {
		return err
	}
	began, waited := time.Now(), false
	e.Waits = func() { waited = true }
	looks, err := m.look(ctx, want, keys) // other machines can see this one by now
	if err != nil {
		return err
	}
	domains, err := guard.Acquire(ctx, e)
	if errors.Is(err, guard.ErrMoves) {
		if err = m.bringDisks(ctx, uuid, want, keys); err == nil {
			domains, err = guard.Acquire(ctx, e)
		}
		waited = true
	}
	regular := looks.files() // after an error, too: it removes what it has mounted
	if err == nil && (waited || time.Since(began) > lookTime) {
		m = m.afresh()
		if looks, err = m.look(ctx, want, keys); err == nil {
			regular = looks.files()
		}
	}
	if err = cmp.Or(err, regular); err != nil {
		return err
	}
	opened := content.OpenedBy(domains)
	if err := m.checkMasterRecords(ctx, want, keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := m.checkSharers(ctx, uuid, topOf(want.Disks[key].Volume)); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	if err := m.checkMasters(ctx, uuid, looks, opened, want, keys); err != nil {
		return err
	}
	return m.engrave(ctx, opened, want, keys)
}

// bringDisks moves disks here that no machine has any more where they were.
func (m Manager) bringDisks(ctx context.Context, uuid string, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if len(want.Disks[key].Volume.Images) == 0 {
			continue
		}
		if err := m.Disks.MoveAlone(ctx, m.key, want.Disks[key].Volume.Images[0], uuid, m.reportOf(ctx, key)); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// reportOf logs the progress of a disk that is copied.
func (m Manager) reportOf(ctx context.Context, disk string) func(host.Progress) {
	return func(is host.Progress) {
		m.log.Info(ctx, "Copying a disk", map[string]any{"disk": disk, "bytes": is.Done, "of": is.All})
	}
}

// lookTime is how long a look counts while hosts are asked.
const lookTime = 5 * time.Second

// looks are what acquire looks at while it lists the domains of all hosts. It is a host whose overlays are listed once, for all disks.
type looks struct {
	Host
	files func() error
	known map[string]func() ([]host.StorageVolume, error)
}

func (l looks) KnownOverlays(_ context.Context, pool string) ([]host.StorageVolume, error) {
	return l.known[pool]()
}

// look begins to look at the files of the disks, and at the overlays on the host if the machine writes to a disk that may be a master.
func (m Manager) look(ctx context.Context, want domainxml.Machine, keys []string) (looks, error) {
	l := looks{
		m.host, sync.OnceValue(func() error { return content.Recheck(ctx, m.host, used(want, keys)) }),
		map[string]func() ([]host.StorageVolume, error){},
	}
	for _, key := range keys {
		if !writes(want.Disks[key]) {
			continue
		}
		pool, err := m.poolOf(ctx, topOf(want.Disks[key].Volume))
		if err != nil {
			return l, err
		}
		if l.known[pool] == nil {
			l.known[pool] = sync.OnceValues(func() ([]host.StorageVolume, error) { return m.host.KnownOverlays(ctx, pool) })
		}
	}
	go func() { _ = l.files() }()
	for _, list := range l.known {
		go func() { _, _ = list() }()
	}
	return l, nil
}

// checkStorage makes the checks of acquire that are about the storage itself, before a machine is shut down for a restart or disks are
// unplugged that these replace. Conflicts with other machines are checked by acquire alone, because they may be resolved until then.
func (m Manager) checkStorage(ctx context.Context, uuid string, want domainxml.Machine, keys []string) error {
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
	return m.checkMasters(ctx, uuid, m.host, content.OpenedBy(domains), want, keys)
}

// checkMasterRecords refuses overlays whose masters were replaced.
func (m Manager) checkMasterRecords(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if err := content.CheckMasterRecords(ctx, m.host, want.Disks[key].Volume.Images); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// overlayTime is how long a machine waits for the removal of its disk's overlays, which the same apply may be doing.
const overlayTime = 5 * time.Second

// checkMasters refuses disks that the machine would write to while they are masters. on is its host.
func (m Manager) checkMasters(ctx context.Context, uuid string, on Host, opened content.Opened, want domainxml.Machine,
	keys []string,
) error {
	for _, key := range keys {
		if !writes(want.Disks[key]) {
			continue
		}
		if err := m.awaitNoOverlay(ctx, uuid, on, topOf(want.Disks[key].Volume), opened); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// writes reports whether the guest writes to an image that may be a master: a disk of a storage pool, or a file or device that is bound
// write-exclusive. Headers never name network storage, and a write-shared image is never a master.
func writes(d domainxml.Disk) bool {
	if len(d.Volume.Images) == 0 || d.ReadOnly || d.Ephemeral || domainxml.IsDrive(d.Device) {
		return false
	}
	top := d.Volume.Images[0]
	return top.IsDisk() && top.AccessMode != volume.ReadShared ||
		top.Binding != "" && top.Type != "network" && top.AccessMode == volume.WriteExclusive
}

// poolOf is the storage pool of an image; empty if it is in none.
func (m Manager) poolOf(ctx context.Context, of volume.Image) (string, error) {
	seen, err := m.inspect(ctx, []volume.Image{of})
	if err != nil || seen[0] == nil {
		return "", err
	}
	return seen[0].Pool, nil
}

// awaitNoOverlay waits until no volume is an overlay of the file; its error names the overlays. on is looked at first.
func (m Manager) awaitNoOverlay(ctx context.Context, uuid string, on Host, of volume.Image, opened content.Opened) error {
	pool, err := m.poolOf(ctx, of)
	if err != nil {
		return err
	}
	found := content.CheckWriter(ctx, on, pool, of.Name, opened)
	if !errors.Is(found, content.ErrMaster) {
		return found
	}
	patient, cancel := context.WithTimeout(ctx, overlayTime)
	defer cancel()
	err = m.host.AwaitEvery(patient, time.Second, uuid, func(ctx context.Context) (bool, error) {
		now := content.CheckWriter(ctx, m.host, pool, of.Name, opened)
		if ctx.Err() == nil {
			found = now
		}
		return !errors.Is(now, content.ErrMaster), nil
	})
	if err != nil && patient.Err() == nil {
		return err
	}
	return found
}
