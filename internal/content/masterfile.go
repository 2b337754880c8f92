package content

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// master is an image whose overlays are searched for, by the backing files in their headers.
type master interface {
	// mayBeNamed reports whether a header may name it. It opens no file, because a guest may have written the name.
	mayBeNamed(ctx context.Context, named string, overlay host.StorageVolume) (bool, error)
	// isNamed reports whether a header for which mayBeNamed is true names it.
	isNamed(ctx context.Context, named string, overlay host.StorageVolume) (bool, error)
}

// Files is a host that resolves paths to files.
type Files interface {
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
	File(ctx context.Context, path string, head int) (host.File, error)
}

// masterFile is a file whose overlays are searched. A header may reference it by any path that leads to it, such as one through a symbolic
// link, and by an image in between that is in no storage pool.
type masterFile struct {
	host Files
	path string
	// volume is the storage volume of the path as of the last read; nil if there is none, or before the first read.
	volume *host.StorageVolume
	// location is host.File.At of the path; nil before the first read, empty if the file is missing.
	location *string
	// mayLeadTo and leadsTo cache the answers for other paths.
	mayLeadTo, leadsTo map[string]bool
}

func newMasterFile(h Files, path string) *masterFile {
	return &masterFile{host: h, path: path, mayLeadTo: map[string]bool{}, leadsTo: map[string]bool{}}
}

func (f *masterFile) mayBeNamed(ctx context.Context, named string, overlay host.StorageVolume) (bool, error) {
	if path.Clean(overlay.Path) == path.Clean(f.path) {
		return false, nil // an image is no overlay of itself
	}
	return f.anyPath(ctx, named, overlay, f.mayLeadTo, f.mayLead)
}

func (f *masterFile) isNamed(ctx context.Context, named string, overlay host.StorageVolume) (bool, error) {
	return f.anyPath(ctx, named, overlay, f.leadsTo, f.leads)
}

// anyPath reports whether one of the paths in a reference is the file's, or one for which leads is true; known caches its answers.
func (f *masterFile) anyPath(
	ctx context.Context, named string, overlay host.StorageVolume, known map[string]bool, leads func(context.Context, string) (bool, error),
) (bool, error) {
	if mayName(named, overlay.Path, f.path) {
		return true, nil
	}
	for _, other := range pathsIn(named, overlay.Path) {
		is, asked := known[other]
		if !asked {
			var err error
			if is, err = leads(ctx, other); err != nil {
				return false, fmt.Errorf("whether %q, which %s is an overlay of, leads to %s is not known: %w", other, overlay.Path, f.path, err)
			}
			known[other] = is
		}
		if is {
			return true, nil
		}
	}
	return false, nil
}

// mayLead reports whether a path may lead to the file. Another volume does not if its length or modification time differs from the file's, and the
// file did not change meanwhile, or if the file is no volume.
func (f *masterFile) mayLead(ctx context.Context, other string) (_ bool, err error) {
	if f.volume == nil {
		if f.volume, err = f.volumeAt(ctx, f.path); err != nil {
			return false, err
		}
	}
	there, err := f.volumeAt(ctx, other)
	if there == nil || err != nil {
		return err == nil, err
	}
	before := f.volume
	if f.volume, err = f.volumeAt(ctx, f.path); before == nil || f.volume == nil || err != nil {
		return false, err
	}
	changed := before.Physical != f.volume.Physical || before.Modified != f.volume.Modified
	return changed || there.Physical == f.volume.Physical && there.Modified == f.volume.Modified, nil
}

// volumeAt is the volume of a path; nil if it is in no active storage pool, or libvirt can't describe it.
func (f *masterFile) volumeAt(ctx context.Context, path string) (*host.StorageVolume, error) {
	v, err := f.host.VolumeAt(ctx, path)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed) {
		return nil, nil
	}
	return &v, err
}

// leads reports whether a path leads to the file, or to an overlay of it. An image of a storage pool is also listed, and checked, as an
// overlay itself.
func (f *masterFile) leads(ctx context.Context, other string) (bool, error) {
	is, over, err := f.relate(ctx, other, image.HeadSize)
	return is || over, err
}

// relate reports whether a path leads to the file, or, by its first head bytes, to an overlay of it. On a host that can't resolve paths, only equal
// paths count.
func (f *masterFile) relate(ctx context.Context, other string, head int) (is, over bool, err error) {
	if may, err := f.mayLead(ctx, other); err != nil || !may {
		return false, false, err
	}
	there, err := f.host.File(ctx, other, head)
	if errors.Is(err, host.ErrCannotTell) || errors.Is(err, host.ErrNotFound) {
		return false, false, nil
	}
	if err == nil && f.location == nil {
		var own host.File
		own, err = f.host.File(ctx, f.path, 0)
		if err = ignoreNotFound(err); err == nil {
			f.location = &own.At // empty where the file is missing
		}
	}
	if err != nil || there.At == *f.location {
		return err == nil, false, err
	}
	named, _ := image.Backing(there.Head)
	if named == "" {
		return false, false, nil
	}
	f.leadsTo[other] = false // ends the search in a circular chain
	over, err = f.isNamed(ctx, named, host.StorageVolume{Path: other})
	return false, over, err
}
