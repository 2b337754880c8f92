package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// basePrefix starts the names of images that disks share. What follows is of their content alone, so that whoever needs it
// finds it, whatever configuration made it. They are nobody's: whoever takes the last disk over one away takes it, too.
const basePrefix = "virtclaim-base-"

// IsBase tells whether the file of that path is an image that disks share.
func IsBase(path string) bool { return strings.HasPrefix(filepath.Base(path), basePrefix) }

// BaseOf is the shared image that a disk is over.
func BaseOf(ctx context.Context, h Host, disk host.StorageVolume) (volume.Image, error) {
	base, err := finishedBase(ctx, h, disk.Pool, filepath.Base(disk.Backing))
	return volume.Image{Name: base.Path, Format: base.Format}, err
}

func (i Image) baseName() string {
	sum := sha256.Sum256([]byte(i.ID))
	return basePrefix + hex.EncodeToString(sum[:])
}

// overBase makes an overlay over the shared image, and that first, if it is not there.
func (m *Maker) overBase(ctx context.Context, key string, h Host, s Spec, report func(host.Progress)) (made host.StorageVolume, err error) {
	name := s.Base.baseName()
	for {
		// The base must not go before the overlay is there that names it.
		err := m.locked(ctx, key, h, func(ctx context.Context) error {
			base, err := finishedBase(ctx, h, s.Pool, name)
			if err == nil {
				made, err = makeOverlay(ctx, h, s, base)
			}
			return err
		})
		if !errors.Is(err, errNoBase) {
			return made, err
		}
		if err := makeBase(ctx, h, Spec{Pool: s.Pool, Name: name, Content: s.Base}, report); err != nil {
			return made, fmt.Errorf("the image that disks of pool %s share: %w", s.Pool, err)
		}
	}
}

// errNoBase is the error of a base that is not there, or not finished. It is no host.ErrNotFound: a disk without it is there.
var errNoBase = errors.New("the image that it shares with others is not there")

// finishedBase is a base that nobody is making any more; errNoBase when there is none. That no journal names it is seen twice:
// one that has just been given up is not there, and one that has just been begun is not finished.
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
	return asProbed(v), nil
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

// makeBase makes a base, or waits while somebody else does. Either way, whether it is there is to be seen afterwards.
func makeBase(ctx context.Context, h Host, s Spec, report func(host.Progress)) error {
	j, err := begin(ctx, h, "", s)
	if err != nil {
		return errors.Join(giveWay(ctx, j, err), j.drop(ctx)) // it may be there all the same
	}
	if _, err := h.Volume(ctx, s.Pool, s.Name); !errors.Is(err, host.ErrNotFound) {
		return errors.Join(err, j.drop(ctx)) // it has been finished since we looked
	}
	_, err = j.upload(ctx, s, report, func(ctx context.Context) error { return h.Undefine(ctx, j.UUID) })
	if errors.Is(err, host.ErrExists) {
		return errors.Join(err, j.drop(ctx))
	}
	if err != nil {
		return undo(ctx, j, err)
	}
	return nil
}

// giveWay waits while the one works that was faster to begin a base. Without one, why it could not be begun is an error.
func giveWay(ctx context.Context, j *journal, why error) error {
	other, err := open(ctx, j.host, j.Note.Pool, j.Note.Volume)
	switch {
	case err == nil && other.UUID != j.UUID:
		return other.awaitBase(ctx)
	case errors.Is(err, host.ErrNotFound) && errors.Is(why, host.ErrExists):
		return nil // it has ended meanwhile, well or not
	}
	return why
}

// awaitBase waits while somebody makes a base, and removes what a dead one has left.
func (j *journal) awaitBase(ctx context.Context) error {
	if err := j.awaitMaker(ctx); err != nil {
		return err
	}
	now, err := open(ctx, j.host, j.Note.Pool, j.Note.Volume)
	if errors.Is(err, host.ErrNotFound) || err == nil && now.UUID != j.UUID {
		return nil
	}
	if err != nil {
		return err
	}
	return now.discard(ctx)
}
