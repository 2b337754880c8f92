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

// ErrMasterChanged is the error of an overlay whose master was written to or replaced.
var ErrMasterChanged = errors.New("the master was written to or replaced since the overlay was created, and over another content an overlay is a " +
	"mix of two disks")

func masterUsage(overlay string) string {
	return "virtclaim master of " + volume.LastingGeneration(overlay)
}

// hasRecord reports whether the overlay at a position of a chain, top first, has a record of the image below it.
func hasRecord(chain []volume.Image, overlay int) bool {
	return len(chain) > overlay+1 && chain[overlay].Generation != "" && chain[overlay+1].Type == "file" && chain[overlay+1].Binding != ""
}

// describeMaster is what is recorded of the file of that path; empty where the host does not show it.
func describeMaster(ctx context.Context, h Files, path string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("no answer within %s", lookTime))
	defer cancel()
	is, err := h.File(ctx, path, 0)
	if errors.Is(err, host.ErrCannotTell) || err == nil && is.Modified == "" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %d bytes, modified at %s", path, is.Length, is.Modified), nil
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
		now, err := describeMaster(ctx, h, path)
		switch {
		case err != nil:
			return err
		case now == "" || now == was:
		case id == "":
			err = addRecord(ctx, h, usage, now)
		default:
			err = fmt.Errorf("%s is an overlay of %s: %w. Recorded was %q, and the file is %q now. If machines run over it, do not stop them: their QEMU may "+
				"have the only copy of the former file. Restore that file with its time (cp -p), or create the overlay anew. If the file was only made "+
				"larger, or only its time has changed, remove the record: virsh secret-undefine %s", chain[n].Name, path, ErrMasterChanged, was, now, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetMasterRecord removes the record of an overlay, the top of a chain, which is gone.
func ForgetMasterRecord(ctx context.Context, h Identities, chain []volume.Image) error {
	if !hasRecord(chain, 0) {
		return nil
	}
	return dropRecord(ctx, h, masterUsage(chain[0].Generation))
}
