package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A master can be replaced or written to outside of virtclaim: the file of a binding, which has no identity, by pods and administrators,
// and a disk by tools that keep its identity (qemu-img commit) or, if the identity is in the ledger only, by mv. Its length and
// modification time are recorded for each overlay, by the overlay's identity: over other content, an overlay is a mix of two disks.

// ErrMasterChanged is the error of an overlay whose master was deleted, written to or replaced.
var ErrMasterChanged = errors.New("the master was deleted, written to or replaced since the overlay was created, and over another " +
	"content an overlay is a mix of two disks")

// ErrMasterGone is ErrMasterChanged for a master that is not there any more: a running guest's QEMU may have the only copy.
var ErrMasterGone = fmt.Errorf("%w", ErrMasterChanged)

func masterUsage(overlay string) string {
	return "virtclaim master of " + volume.LastingGeneration(overlay)
}

// describeMaster is the description of a master for its record, and whether the host can open the file; empty if the host can't show it.
func describeMaster(ctx context.Context, h masterRecords, master volume.Image) (description string, opened bool, err error) {
	if master.IsDisk() {
		return describeDisk(ctx, h, master)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, inspectTime, fmt.Errorf("no answer within %s", inspectTime))
	defer cancel()
	is, err := h.File(ctx, master.Name, 0)
	switch {
	case errors.Is(err, host.ErrCannotTell):
		return "", false, nil
	case err != nil:
		return "", false, err
	case is.Modified == "":
		return master.Name + ": no file that the host can open", false, nil
	}
	return describeFile(master.Name, is.Length, is.Modified), true, nil
}

// describeDisk names the volume without its folder, which may move with the pool. A missing or wrong volume is detected by its identity,
// not here.
func describeDisk(ctx context.Context, h masterRecords, master volume.Image) (description string, opened bool, err error) {
	v, err := h.VolumeAt(ctx, master.Name)
	switch {
	case errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed):
		return "", false, nil
	case err != nil || v.Modified == "":
		return "", false, err
	}
	return describeFile(v.Name, v.Physical, v.Modified), true, nil
}

func describeFile(name string, bytes int64, modified string) string {
	return fmt.Sprintf("%s: %d bytes, modified at %s", name, bytes, modified)
}

// masterRecords are the calls of a host that keep the records of masters.
type masterRecords interface {
	Locator
	File(ctx context.Context, path string, head int) (host.File, error)
}

// CheckMasterRecords returns ErrMasterChanged for a chain, top first, with a master that differs from its record. A missing record is
// added.
func CheckMasterRecords(ctx context.Context, h masterRecords, chain []volume.Image) error {
	for n := range chain {
		err := checkBase(ctx, h, chain[n], true)
		if err == nil && n > 0 {
			err = checkRecord(ctx, h, chain[n-1], chain[n], true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRecord compares a master with the record that its overlay has of it. add has a missing record added. Shared images have records of
// their own.
func checkRecord(ctx context.Context, h masterRecords, overlay, master volume.Image, add bool) error {
	if overlay.Generation == "" || master.Type != "file" || master.Binding == "" && master.Generation == "" {
		return nil
	}
	usage := masterUsage(overlay.Generation)
	was, id, err := recordOf(ctx, h, usage)
	if err != nil {
		return err
	}
	now, opened, err := describeMaster(ctx, h, master)
	switch {
	case err != nil || now == "" || isSameFile(was, now):
		return err
	case id != "" && !isOfAnother(was, master):
		return describeChange(overlay.Name, master.Name, was, now, id)
	case add && opened:
		return addRecord(ctx, h, usage, now)
	}
	return nil
}

// isSameFile compares descriptions. Times may differ in their fraction, because many archives and filesystems keep whole seconds only.
func isSameFile(was, now string) bool {
	return was == now || strings.HasPrefix(was, now+".") || was != "" && strings.HasPrefix(now, was+".")
}

// isOfAnother reports whether a record is of another disk: the overlay was rebased, as its header shows, or its master was renamed.
func isOfAnother(record string, master volume.Image) bool {
	return master.IsDisk() && !strings.HasPrefix(record, path.Base(master.Name)+": ")
}

func describeChange(overlay, master, was, now, record string) error {
	return fmt.Errorf("%s is an overlay of %s: %w. Recorded was %q, and the file is %q now. If machines run over it, do not stop them: "+
		"their QEMU may have the only copy of the former file. Restore that file with its time (cp -p). If it was only made larger, or "+
		"only its time was set: virsh secret-undefine %s",
		overlay, master, ErrMasterChanged, was, now, record)
}

// CheckMasters is CheckMasterRecords for a plan, which adds no record.
func CheckMasters(ctx context.Context, h masterRecords, chain []volume.Image) error {
	all := []error{CheckOpenMasters(ctx, h, chain)}
	for _, i := range chain {
		all = append(all, checkBase(ctx, h, i, false))
	}
	return errors.Join(all...)
}

// CheckOpenMasters is ErrMasterChanged for a disk that a guest has open, given as its chain, top first, if a master of it was deleted or
// replaced: QEMU may have the only copy. The error names all masters, also those that can't be checked.
func CheckOpenMasters(ctx context.Context, h masterRecords, chain []volume.Image) error {
	var all []error
	for n := 1; n < len(chain); n++ {
		all = append(all, checkOpenMaster(ctx, h, chain[n-1], chain[n]))
	}
	return errors.Join(all...)
}

func checkOpenMaster(ctx context.Context, h masterRecords, overlay, master volume.Image) error {
	if master.IsDisk() {
		gone, err := IsGone(ctx, h, master)
		if gone || errors.Is(err, host.ErrUndescribed) { // libvirt could describe it when the overlay was created
			return describeLoss(overlay.Name, master.Name)
		}
		if err != nil {
			return err
		}
	}
	err := checkRecord(ctx, h, overlay, master, false)
	if errors.Is(err, host.ErrNotFound) {
		return describeLoss(overlay.Name, master.Name)
	}
	return err
}

func describeLoss(overlay, master string) error {
	return fmt.Errorf("%s is an overlay of %s: %w. No active storage pool of the host has that master now, or, if it is the file of a "+
		"binding, there is none. If its pool is only stopped or has another folder, bring it back. Otherwise do not stop machines that "+
		"run over it: their QEMU may have the only copy",
		overlay, master, ErrMasterGone)
}

// ForgetMasterRecord removes the record of a deleted overlay, the top of a chain. A pulled overlay also has a record, but no master any
// more.
func ForgetMasterRecord(ctx context.Context, h Identities, chain []volume.Image) error {
	if len(chain) == 0 || chain[0].Generation == "" {
		return nil
	}
	return dropRecord(ctx, h, masterUsage(chain[0].Generation))
}
