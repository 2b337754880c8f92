package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A running guest keeps the files that it was started with open, even if they are renamed or deleted. What it has written is in no other
// file, so such a file is never exchanged for a copy or, if it was deleted, for a new one. See decision 0018.

// errOpen is the error of a machine whose guest would lose what it has written.
var errOpen = errors.New("nothing was changed, because the running guest would lose what it has written")

// OpenFile is a disk whose guest writes to another file than the one in state, or to a deleted one.
type OpenFile struct {
	domainxml.Attached
	// wanted is the image of that disk in the plan; without a name if it is to be created, or if there is none.
	wanted volume.Image
	// Moved is set if both are the same file, or copies of it; otherwise the file is gone.
	Moved bool
	// hidden is set if only QEMU's lock shows that it is gone, which no plan has shown.
	hidden bool
}

// openFiles are such disks of a running domain. isGone, which may be slow, is called for each candidate.
func openFiles(live *domainxml.Domain, wanted func(key string) volume.Image,
	isGone func(*OpenFile) (bool, error),
) (all []OpenFile, err error) {
	for _, a := range live.Attached() {
		if !a.Writes() || a.Volume.Images[0].Type != "file" {
			continue
		}
		f := OpenFile{Attached: a, wanted: wanted(a.Key)}
		f.Moved = volume.IsMoved(a.Volume.Images[0], f.wanted)
		gone := false
		if !f.Moved {
			if gone, err = isGone(&f); err != nil {
				return nil, fmt.Errorf("whether the file of disk %s is still there is not known: %w", a.Key, err)
			}
		}
		if f.Moved || gone {
			all = append(all, f)
		}
	}
	return all, nil
}

// OpenFilesOfPlan are such disks of a running domain among those that a plan changes, as far as no domain needs to be started to
// prove it: the apply does that.
func (m Manager) OpenFilesOfPlan(ctx context.Context, uuid string, wanted map[string]volume.Volume, changed []string) ([]OpenFile, error) {
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return openFiles(live, func(key string) volume.Image { return topOf(wanted[key]) }, func(f *OpenFile) (bool, error) {
		if !slices.Contains(changed, f.Key) || f.isUnnoted() || f.isOfClaim() {
			return false, nil
		}
		return content.IsGone(ctx, m.host, f.Volume.Images[0])
	})
}

// isUnnoted reports whether the metadata doesn't have which file of that name the guest has open: it was started, or the disk attached,
// without virtclaim. The name may belong to another file by now, also to one that was just created.
func (f OpenFile) isUnnoted() bool {
	is := f.Volume.Images[0]
	return is.IsDisk() && is.Generation == "" && is.Name == f.wanted.Name && f.wanted.Generation != ""
}

// isOfClaim reports whether it is a file that pods may replace. It has no identity.
func (f OpenFile) isOfClaim() bool { return f.Volume.Images[0].Binding != "" }

// isTaken reports whether the machine loses the file, now or at its next start.
func (f OpenFile) isTaken() bool { return f.wanted.Name != f.Volume.Images[0].Name }

// isGone queries the host about an open file. A file that still exists under its name may be a copy: QEMU's lock proves that it is the
// guest's. Nothing is known of a disk that was attached manually.
func (m Manager) isGone(ctx context.Context, uuid string, f *OpenFile) (bool, error) {
	if !f.isOfClaim() && !f.isUnnoted() {
		if gone, err := content.IsGone(ctx, m.host, f.Volume.Images[0]); gone || err != nil || f.Volume.Images[0].Generation == "" {
			return gone, err
		}
	}
	return m.isExchanged(ctx, uuid, f)
}

// isExchanged reports whether the guest has another file open than the present one of that name. It starts a domain to test that.
func (m Manager) isExchanged(ctx context.Context, uuid string, f *OpenFile) (bool, error) {
	top := f.Volume.Images[0]
	if err := guard.CheckSoleWriter(ctx, m.key, m.host, top, uuid); err != nil {
		return false, err
	}
	is, _, err := content.HasOpen(ctx, m.host, top)
	f.hidden = !is
	return !is, err
}

// checkOpenFiles refuses to unplug files from the running guest that have data which no other file has. With restarts, a deleted file may
// be discarded, as the plan has warned, unless the machine is to have that very file. It is called before anything changes.
func (m Manager) checkOpenFiles(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine, restarts bool) error {
	if live == nil {
		return nil
	}
	loses := live.DisksToDetach(want)
	isLost := func(key string) bool { return restarts || slices.Contains(loses, key) }
	if err := m.checkLiveMasters(ctx, live, want.Name, isLost); err != nil {
		return err
	}
	all, err := openFiles(live, func(key string) volume.Image { return topOf(want.Disks[key].Volume) }, func(f *OpenFile) (bool, error) {
		if isLost(f.Key) || f.isUnnoted() {
			return m.isGone(ctx, uuid, f)
		}
		if !f.isTaken() {
			return false, nil
		}
		gone, err := m.isGone(ctx, uuid, f)
		return gone && f.hidden, err
	})
	if err != nil {
		return err
	}
	return refuseOpen(slices.DeleteFunc(all, func(f OpenFile) bool {
		same := f.wanted.Name == f.Volume.Images[0].Name && !volume.IsRemade(f.wanted, f.Volume.Images[0])
		return restarts && !f.Moved && !same && !f.hidden
	}), want.Name)
}

// checkExchanged refuses to end a running guest with a claim's file that was deleted or replaced, or with a disk without an identity in its
// header, such as a raw one, whose replacement only QEMU's lock reveals: the claim or the disk remains, and its user expects the guest's
// data there. Other deleted disks are in the warnings of each plan. Shutting the machine down is consent. A master that is gone
// counts, too, because the guest may have the only copy; one that differs from its record does not: it was most likely written to in place.
func (m Manager) checkExchanged(ctx context.Context, uuid string, live *domainxml.Domain, name string) error {
	if live == nil {
		return nil
	}
	if err := m.checkLiveMasters(ctx, live, name, func(string) bool { return true }); errors.Is(err, content.ErrMasterGone) {
		return err
	}
	none := func(string) volume.Image { return volume.Image{} }
	all, err := openFiles(live, none, func(f *OpenFile) (bool, error) {
		if !f.isOfClaim() && !m.isThereByLedger(ctx, f.Volume.Images[0]) {
			return false, nil
		}
		return m.isExchanged(ctx, uuid, f)
	})
	if err != nil {
		return fmt.Errorf("%w. To end it all the same, shut the machine down first (running = false, or virsh destroy %s)", err, name)
	}
	if len(all) == 0 {
		return nil
	}
	state, err := m.host.State(ctx, uuid)
	if errors.Is(err, host.ErrNotFound) || err == nil && !state.Active {
		return nil // it has shut down since
	}
	return refuseOpen(all, name)
}

// refuseOpen returns errOpen for files of a machine.
func refuseOpen(files []OpenFile, machine string) error {
	if len(files) == 0 {
		return nil
	}
	why := make([]string, 0, len(files))
	for _, f := range files {
		why = append(why, f.Explain(machine))
	}
	return fmt.Errorf("%w: %s", errOpen, strings.Join(why, "\n\n"))
}

// isThereByLedger reports whether a disk still exists as far as its host's ledger knows, such as a raw one, whose file has no identity. A
// disk that can't be looked up does not block the end of its machine.
func (m Manager) isThereByLedger(ctx context.Context, disk volume.Image) bool {
	if disk.Generation == "" {
		return false
	}
	is, err := content.Inspect(ctx, m.host, disk)
	if err != nil {
		m.log.Warn(ctx, "Whether a disk is still there is not known", map[string]any{"disk": disk.Name, "error": err.Error()})
	}
	return err == nil && !is.IsGone(disk) && !is.ProvesItself(disk)
}

// checkSharers refuses a claim's file that another running machine shares if that machine writes to a former file of the name.
func (m Manager) checkSharers(ctx context.Context, uuid string, i volume.Image) error {
	if i.Type != "file" || i.Binding == "" || i.AccessMode != volume.WriteShared {
		return nil
	}
	users, err := guard.Users(ctx, m.key, m.host, i)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(users, func(u guard.Use) bool { return u.Live && u.UUID != uuid && u.Depth == 0 && u.Device.Writes() })
	if n < 0 {
		return nil
	}
	if err := guard.CheckSoleWriter(ctx, m.key, m.host, i, uuid); err != nil {
		return err
	}
	if open, _, err := content.HasOpen(ctx, m.host, i); open || err != nil {
		return err
	}
	if state, err := m.host.State(ctx, users[n].UUID); err != nil || !state.Active {
		return nil //nolint:nilerr // it has shut down since
	}
	return fmt.Errorf("%w: domain %s has %s, too, and writes to a file that had that name and was deleted or replaced, by hand or by a "+
		"pod. To save what its guest has written: %s. To go on without that, shut it down first", guard.ErrInUse, users[n].Domain, i.Name,
		guard.Rescue(users[n].Domain, users[n].Device.Target))
}

// Explain describes the file that the guest has open, and the remedy.
func (f OpenFile) Explain(machine string) string {
	is := fmt.Sprintf("the guest of %s has %s open as disk %s (%s), ", machine, f.Volume.Images[0].Name, f.Key, f.Target)
	if f.Moved {
		return is + fmt.Sprintf("and the state names %s, which is a copy of that file, or that file after it was moved. What the guest "+
			"has written since is not in a copy. Shut the machine down (running = false), make sure that the file at the new path is the "+
			"newest one, and start it. Or give the storage pool its former folder.", f.wanted.Name)
	}
	became := "which is not a volume of a storage pool any more: it was deleted or replaced by hand, or the pool has another folder now"
	if f.isOfClaim() || f.isUnnoted() || f.hidden {
		became = "and that name is another file's now, or none's: the file was deleted or replaced, by hand or by a pod"
	}
	if f.hidden {
		became += ", as QEMU's lock shows (unless its filesystem has no locks)"
	}
	return is + became + fmt.Sprintf(". What the guest has written may be nowhere else; when the file was deleted, it is lost as soon as "+
		"the guest stops. To save it: %s. To go on without it, shut the machine down (running = false, or virsh destroy %s) and apply.",
		guard.Rescue(machine, f.Target), machine)
}

func topOf(v volume.Volume) volume.Image {
	if len(v.Images) == 0 {
		return volume.Image{}
	}
	return v.Images[0]
}

// A running guest also keeps the masters open that it was started with. If one was deleted or replaced, QEMU may have the only copy, which
// all its overlays need.

// checkLiveMasters returns content.ErrMasterChanged if the running guest is about to lose a disk and is the only one that still has its
// former master open.
func (m Manager) checkLiveMasters(ctx context.Context, live *domainxml.Domain, name string, isLost func(key string) bool) error {
	var all []error
	for _, a := range live.Attached() {
		if !isLost(a.Key) {
			continue
		}
		err := content.CheckOpenMasters(ctx, m.host, a.Volume.Images)
		if errors.Is(err, content.ErrMasterChanged) {
			err = guard.ExplainMaster(name, a, err)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
