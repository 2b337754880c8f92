package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A master that is the file of a binding has no identity, and pods and administrators can replace it. Its length and modification time are
// recorded for each overlay, by the identity of that: over another content, an overlay is a mix of two disks.

// ErrMasterChanged is the error of an overlay whose master was deleted, written to or replaced.
var ErrMasterChanged = errors.New("the master was deleted, written to or replaced since the overlay was created, and over another content an " +
	"overlay is a mix of two disks")

func masterUsage(overlay string) string {
	return "virtclaim master of " + volume.LastingGeneration(overlay)
}

// hasRecord reports whether the overlay at a position of a chain, top first, has a record of the image below it.
func hasRecord(chain []volume.Image, overlay int) bool {
	return len(chain) > overlay+1 && chain[overlay].Generation != "" && chain[overlay+1].Type == "file" && chain[overlay+1].Binding != ""
}

// describeMaster is what is recorded of the file of that path, and whether it is one that the host can open; empty where the host does not show it.
func describeMaster(ctx context.Context, h Files, path string) (description string, opened bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("no answer within %s", lookTime))
	defer cancel()
	is, err := h.File(ctx, path, 0)
	switch {
	case errors.Is(err, host.ErrCannotTell):
		return "", false, nil
	case err != nil:
		return "", false, err
	case is.Modified == "":
		return path + ": no file that the host can open", false, nil
	}
	return fmt.Sprintf("%s: %d bytes, modified at %s", path, is.Length, is.Modified), true, nil
}

// masterRecords is a host that keeps these records.
type masterRecords interface {
	Identities
	Files
}

// CheckMasterRecords is ErrMasterChanged for a chain, top first, with a master that differs from its record. A missing record is added.
func CheckMasterRecords(ctx context.Context, h masterRecords, chain []volume.Image) error {
	for n := range chain {
		if !hasRecord(chain, n) {
			continue
		}
		path, usage := chain[n+1].Name, masterUsage(chain[n].Generation)
		was, id, err := recordOf(ctx, h, usage)
		if err != nil {
			return err
		}
		now, opened, err := describeMaster(ctx, h, path)
		switch {
		case err != nil:
			return err
		case now == "" || now == was:
		case id == "" && opened:
			err = addRecord(ctx, h, usage, now)
		case id != "":
			err = describeChange(chain[n].Name, path, was, now, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func describeChange(overlay, master, was, now, record string) error {
	return fmt.Errorf("%s is an overlay of %s: %w. Recorded was %q, and the file is %q now. If machines run over it, do not stop them: their QEMU may "+
		"have the only copy of the former file. Restore that file with its time (cp -p), or, when they are shut down, create the overlay anew. If the file was only made "+
		"larger, or only its time has changed, remove the record: virsh secret-undefine %s", overlay, master, ErrMasterChanged, was, now, record)
}

// CheckOpenMasters is ErrMasterChanged for a disk that a guest has open, as its chain, top first, if a master of it was deleted or replaced: QEMU may
// have the only copy. Its error has all masters, also those of which nothing is known.
func CheckOpenMasters(ctx context.Context, h masterRecords, chain []volume.Image) error {
	var all []error
	for n := 1; n < len(chain); n++ {
		all = append(all, checkOpenMaster(ctx, h, chain[n-1], chain[n]))
	}
	return errors.Join(all...)
}

func checkOpenMaster(ctx context.Context, h masterRecords, overlay, master volume.Image) error {
	switch {
	case master.IsDisk():
		gone, err := IsGone(ctx, h, master)
		if gone || errors.Is(err, host.ErrUndescribed) { // libvirt understood it when the overlay was created
			return describeLoss(overlay.Name, master.Name)
		}
		return err
	case hasRecord([]volume.Image{overlay, master}, 0):
		was, id, err := recordOf(ctx, h, masterUsage(overlay.Generation))
		if err != nil {
			return err
		}
		now, _, err := describeMaster(ctx, h, master.Name)
		switch {
		case errors.Is(err, host.ErrNotFound):
			return describeLoss(overlay.Name, master.Name)
		case err != nil || now == "" || id == "" || now == was:
			return err
		}
		return describeChange(overlay.Name, master.Name, was, now, id)
	}
	return nil
}

func describeLoss(overlay, master string) error {
	return fmt.Errorf("%s is an overlay of %s: %w. No active storage pool of the host has that master now, or, if it is the file of a binding, there is none. If "+
		"its pool is only stopped or has another folder, bring it back. Otherwise do not stop machines that run over it: their QEMU may have the only copy",
		overlay, master, ErrMasterChanged)
}

// ForgetMasterRecord removes the record of an overlay, the top of a chain, which is gone.
func ForgetMasterRecord(ctx context.Context, h Identities, chain []volume.Image) error {
	if !hasRecord(chain, 0) {
		return nil
	}
	return dropRecord(ctx, h, masterUsage(chain[0].Generation))
}
