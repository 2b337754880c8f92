package content

import (
	"cmp"
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

// BasesOf returns the shared images below a disk, the lowest one last. They are complete, because overlays are created only over complete
// ones.
func BasesOf(ctx context.Context, h Host, disk host.StorageVolume) (bases []volume.Image, err error) {
	for at := disk; IsBase(at.Backing) && len(bases) < maxLayers; {
		if at, err = h.Volume(ctx, disk.Pool, filepath.Base(at.Backing)); errors.Is(err, host.ErrNotFound) {
			err = errNoBase
		}
		if err != nil {
			return nil, err
		}
		bases = append(bases, volume.Image{Name: at.Path, Format: asProbed(at).Format})
	}
	if len(bases) == 0 {
		err = errNoBase
	}
	return bases, err
}

// namesOfBases are the names of the shared images on a host, the lowest one first. Two hosts with one folder as their pool have an image
// each, because neither sees the domains and journals of the other.
func (s Spec) namesOfBases(ctx context.Context, h Host) (names []string, err error) {
	var ids []string
	if s.Base != nil {
		ids = append(ids, s.Base.ID)
	}
	for _, l := range s.Layers {
		ids = append(ids, layerID(l))
	}
	if len(ids) == 0 {
		return nil, nil
	}
	host, err := h.UUID(ctx)
	for _, id := range ids {
		sum := sha256.Sum256([]byte(host + " " + id))
		names = append(names, BasePrefix+hex.EncodeToString(sum[:]))
	}
	return names, err
}

// CheckBase reports whether the host has the shared image already, so that nothing is downloaded, and refuses one that is larger than the
// volume.
func (s Spec) CheckBase(ctx context.Context, h Host) (has bool, err error) {
	names, err := s.namesOfBases(ctx, h)
	if err != nil || s.Base == nil || s.Pool == "" {
		return false, err
	}
	base, err := h.Volume(ctx, s.Pool, names[0])
	if errors.Is(err, host.ErrNoPool) || errors.Is(err, host.ErrNotFound) { // the pool may be made before
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.holds("the image", asProbed(base).Capacity)
}

// overBase creates an overlay of the shared images, and before it those that do not exist.
func (m *Creator) overBase(ctx context.Context, key string, j *journal, s Spec,
	report func(host.Progress),
) (made host.StorageVolume, err error) {
	var release func()
	defer func() {
		if release != nil {
			release()
		}
	}()
	for {
		// No base must be deleted before the overlay that names it exists.
		err := m.locked(ctx, key, j.host, func(ctx context.Context) error {
			base, err := finishedBases(ctx, j.host, s)
			if errors.Is(err, errNoBase) && release == nil { // creating a base can take minutes
				// Who deletes bases reads the domains under the mutex: later, it could delete those below after it has read them.
				release, err = j.live(ctx)
				return cmp.Or(err, errNoBase)
			}
			if err != nil {
				return err
			}
			made, err = makeOverlay(ctx, j.host, s, base)
			return err
		})
		if err == nil {
			return made, j.finish(ctx, made)
		}
		if !errors.Is(err, errNoBase) {
			return made, err
		}
		if s.Base != nil {
			err = m.makeBase(ctx, key, j.host, Spec{Pool: s.Pool, Name: s.baseNames[0], Content: s.Base}, report)
		} else {
			err = m.makeLayers(ctx, key, j.host, s, report)
		}
		if err != nil {
			return made, fmt.Errorf("the image that disks of pool %s share: %w", s.Pool, err)
		}
	}
}

// finishedBases returns the highest one of shared images, all of which are complete and were not written to.
func finishedBases(ctx context.Context, h Host, s Spec) (top host.StorageVolume, err error) {
	opened, err := openedOn(ctx, h)
	if err != nil {
		return top, err
	}
	for n, name := range s.baseNames {
		if top, err = finishedBase(ctx, h, s.Pool, name); err != nil {
			return top, err
		}
		if err := refuseWritten(opened, top); err != nil {
			return top, err
		}
		if err := s.refuseOther(n, top); err != nil {
			return top, err
		}
		if err := checkUnchanged(ctx, h, top); err != nil {
			return top, err
		}
	}
	return top, nil
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

// refuseWritten refuses an image that disks share and that a domain writes to, or would at its next start, as after virsh blockcommit
// without --base: it is no longer what was downloaded.
func refuseWritten(opened Opened, base host.StorageVolume) error {
	writer, format := "", ""
	for i := range opened.of(base) {
		if i.AccessMode != volume.ReadShared {
			writer, format = i.domain.Name, i.Format
		}
	}
	if writer == "" {
		return nil
	}
	return fmt.Errorf("domain %s has the image %s of storage pool %s, which disks share, open for writing, as after virsh blockcommit "+
		"without --base: no other disk over it can be used any more. Save what the domain has (stop it, and copy the image: %s), and "+
		"remove all disks over it: the next one downloads it again",
		writer, base.Name, base.Pool, image.ConvertCommand(format, "qcow2", base.Path))
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
	if err := s.holds("the image", base.Capacity); err != nil {
		return host.StorageVolume{}, err
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
		return errors.Join(m.awaitFaster(ctx, key, j, err), j.remove(ctx)) // the journal may exist although begin failed
	}
	if is, err := isThere(ctx, h, s); is || err != nil {
		return errors.Join(err, j.remove(ctx)) // another process has finished it in between
	}
	if err := forgetBase(ctx, h, s.Pool, s.Name); err != nil { // the record of an image that was removed outside of Terraform
		return errors.Join(err, j.remove(ctx))
	}
	_, err = j.upload(ctx, s, report, func(ctx context.Context, _ host.StorageVolume) error { return h.Undefine(ctx, j.UUID) })
	if errors.Is(err, host.ErrExists) {
		return errors.Join(err, j.remove(ctx))
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
