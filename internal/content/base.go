package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// BasePrefix starts the names of images that disks share. The rest of a name depends on the content and the host alone, so that all
// configurations find the same image. Shared images have no owner: they are deleted together with the last disk over them.
const BasePrefix = volume.BasePrefix

// IsBase reports whether the path is that of an image that disks share.
func IsBase(path string) bool { return volume.IsBase(path) }

// BaseOf returns the shared image below a disk. That image is complete, because overlays are created only over complete ones.
func BaseOf(ctx context.Context, h Host, disk host.StorageVolume) (volume.Image, error) {
	base, err := h.Volume(ctx, disk.Pool, filepath.Base(disk.Backing))
	if errors.Is(err, host.ErrNotFound) {
		err = errNoBase
	}
	return volume.Image{Name: base.Path, Format: asProbed(base).Format}, err
}

// baseName is the name of a shared image on a host. Two hosts with one folder as their pool have an image each, because neither
// sees the domains and journals of the other.
func (i Image) baseName(ctx context.Context, h Host) (string, error) {
	id, err := h.UUID(ctx)
	sum := sha256.Sum256([]byte(id + " " + i.ID))
	return BasePrefix + hex.EncodeToString(sum[:]), err
}

// overBase creates an overlay of the shared image, and before it the image, if it does not exist.
func (m *Creator) overBase(ctx context.Context, key string, j *journal, s Spec, report func(host.Progress)) (made host.StorageVolume, err error) {
	for lives := false; ; lives = true {
		// The base must not be deleted before the overlay that names it exists.
		err := m.locked(ctx, key, j.host, func(ctx context.Context) error {
			base, err := finishedBase(ctx, j.host, s.Pool, s.baseName)
			if err == nil {
				err = refuseWritten(ctx, j.host, base)
			}
			if err == nil {
				err = checkUnchanged(ctx, j.host, base)
			}
			if err == nil {
				made, err = makeOverlay(ctx, j.host, s, base)
			}
			return err
		})
		if err == nil {
			err = j.finish(ctx, made)
		}
		if !errors.Is(err, errNoBase) {
			return made, err
		}
		if !lives { // creating a base can take minutes
			release, err := j.live(ctx)
			if err != nil {
				return made, err
			}
			defer release()
		}
		if err := m.makeBase(ctx, key, j.host, Spec{Pool: s.Pool, Name: s.baseName, Content: s.Base}, report); err != nil {
			return made, fmt.Errorf("the image that disks of pool %s share: %w", s.Pool, err)
		}
	}
}

// errNoBase is the error of a base that is missing or unfinished. It is not host.ErrNotFound, because the disk over it exists.
var errNoBase = errors.New("the image that it shares with others is not there")

// finishedBase is a base that is complete; errNoBase when there is none. The journal is checked before and after the volume is read:
// a creation may have been reverted, or begun, in between. The header is checked as well, because the journal may have been lost.
func finishedBase(ctx context.Context, h Host, pool, name string) (v host.StorageVolume, err error) {
	for range 2 {
		_, err := open(ctx, h, pool, name)
		if err == nil {
			return v, errNoBase
		}
		if !errors.Is(err, host.ErrNotFound) {
			return v, err
		}
		if v, err = h.Volume(ctx, pool, name); errors.Is(err, host.ErrNotFound) {
			return v, errNoBase
		} else if err != nil {
			return v, err
		}
	}
	unfinished, err := isUnfinished(ctx, h, v)
	if err == nil && unfinished {
		err = errNoBase
	}
	return asProbed(v), err
}

// refuseWritten refuses an image that disks share and that a domain writes to, or would at its next start, as after virsh blockcommit without
// --base: it is no longer what was downloaded.
func refuseWritten(ctx context.Context, h Host, base host.StorageVolume) error {
	opened, err := openedOn(ctx, h)
	writer, format := "", ""
	for i := range opened.of(base) {
		if i.AccessMode != volume.ReadShared {
			writer, format = i.domain.Name, i.Format
		}
	}
	if err == nil && writer != "" {
		err = fmt.Errorf("domain %s has the image %s of storage pool %s, which disks share, open for writing, as after virsh blockcommit without "+
			"--base. It no longer has what was downloaded, and no other disk over it can be used any more. Save what the domain has (stop it, and "+
			"copy the image: %s), and remove all disks over it: the next one downloads it again",
			writer, base.Name, base.Pool, image.ConvertCommand(format, "qcow2", base.Path))
	}
	return err
}

func isUnfinished(ctx context.Context, h Host, v host.StorageVolume) (bool, error) {
	if v.Physical < sector {
		return true, nil
	}
	return h.IsUnfinished(ctx, v.Pool, v.Name)
}

func makeOverlay(ctx context.Context, h Host, s Spec, base host.StorageVolume) (host.StorageVolume, error) {
	if s.Capacity == 0 {
		s.Capacity = base.Capacity
	}
	if s.Capacity < base.Capacity {
		return host.StorageVolume{}, fmt.Errorf("the image has %d bytes, and the disk is to have %d. Set a size that is at least as large, or "+
			"leave it out", base.Capacity, s.Capacity)
	}
	s.Mode, s.Master = volume.CopyOnWrite, volume.Volume{Images: []volume.Image{{Type: "file", Format: base.Format, Name: base.Path}}}
	if err := h.CreateVolume(ctx, s.Pool, s.xml(), false); err != nil {
		return host.StorageVolume{}, err
	}
	return h.Volume(ctx, s.Pool, s.Name)
}

// makeBase creates a base, or waits for another process that does. The caller checks afterwards whether it exists.
func (m *Creator) makeBase(ctx context.Context, key string, h Host, s Spec, report func(host.Progress)) error {
	j, err := begin(ctx, h, "", s)
	if err != nil {
		return errors.Join(m.awaitFaster(ctx, key, j, err), j.drop(ctx)) // the journal may exist although begin failed
	}
	if is, err := isThere(ctx, h, s); is || err != nil {
		return errors.Join(err, j.drop(ctx)) // another process has finished it in between
	}
	if err := forgetBase(ctx, h, s.Pool, s.Name); err != nil { // the record of an image that was removed outside of Terraform
		return errors.Join(err, j.drop(ctx))
	}
	_, err = j.upload(ctx, s, report, func(ctx context.Context, _ host.StorageVolume) error { return h.Undefine(ctx, j.UUID) })
	if errors.Is(err, host.ErrExists) {
		return errors.Join(err, j.drop(ctx))
	}
	if err != nil {
		return undo(ctx, j, err)
	}
	return nil
}

// isThere reports whether a base exists by now, and removes an incomplete one that has no journal any more.
func isThere(ctx context.Context, h Host, s Spec) (bool, error) {
	v, err := h.Volume(ctx, s.Pool, s.Name)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if unfinished, err := isUnfinished(ctx, h, v); err != nil || !unfinished {
		return err == nil, err
	}
	return false, ignoreNotFound(h.DeleteVolume(ctx, s.Pool, s.Name))
}

// awaitFaster waits for another process that began the same base first. If there is none, the error is why this one could not begin.
func (m *Creator) awaitFaster(ctx context.Context, key string, j *journal, why error) error {
	other, err := open(ctx, j.host, j.Note.Pool, j.Note.Volume)
	switch {
	case err == nil && other.UUID != j.UUID:
		return m.awaitBase(ctx, key, other)
	case errors.Is(err, host.ErrNotFound) && errors.Is(why, host.ErrExists):
		return nil // the other creation has ended, with or without success
	case err != nil && !errors.Is(err, host.ErrNotFound):
		return err
	}
	return why
}

// awaitBase waits for the creation of a base by another process, and removes a partial one if that process has died.
func (m *Creator) awaitBase(ctx context.Context, key string, other *journal) error {
	if err := other.awaitCreator(ctx); err != nil {
		return err
	}
	return m.removeStale(ctx, key, other)
}
