package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// lower tells which volumes are overlays of a file or image, by what their headers reference.
type lower interface {
	// may reports whether the backing file named by an overlay's header may be it. Asking has no side effect: a guest may have written that name.
	may(ctx context.Context, named string, overlay host.StorageVolume) (bool, error)
	// is reports whether what may be it is it.
	is(ctx context.Context, named string, overlay host.StorageVolume) (bool, error)
}

// Files is a host that tells what paths lead to.
type Files interface {
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
	File(ctx context.Context, path string, head int) (host.File, error)
}

// file is a file whose overlays are looked for. A header may reference it by any path that leads to it, such as one through a symbolic link, and
// by an image in between that is in no storage pool.
type file struct {
	host Files
	path string
	// own is the volume of that path at the last look, where it is one, and at what the path leads to, once that was asked for.
	own *host.StorageVolume
	at  *string
	// maybe and below are what was found out about other paths.
	maybe, below map[string]bool
}

func lowerFile(h Files, path string) *file {
	return &file{host: h, path: path, maybe: map[string]bool{}, below: map[string]bool{}}
}

func (f *file) may(ctx context.Context, named string, overlay host.StorageVolume) (bool, error) {
	if path.Clean(overlay.Path) == path.Clean(f.path) {
		return false, nil // nothing is an overlay of itself
	}
	return f.any(ctx, named, overlay, f.maybe, f.mayLead)
}

func (f *file) is(ctx context.Context, named string, overlay host.StorageVolume) (bool, error) {
	return f.any(ctx, named, overlay, f.below, f.leads)
}

// any reports whether a path in the name of a backing file is the file's, or one that tells says so of; known keeps those.
func (f *file) any(
	ctx context.Context, named string, overlay host.StorageVolume, known map[string]bool, tells func(context.Context, string) (bool, error),
) (bool, error) {
	if mayName(named, overlay.Path, f.path) {
		return true, nil
	}
	for _, other := range pathsIn(named, overlay.Path) {
		is, asked := known[other]
		if !asked {
			var err error
			if is, err = tells(ctx, other); err != nil {
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

// mayLead reports whether a path may lead to the file. Another volume does not if its length or its time differs from the file's, which did not
// change meanwhile, or if the file is no volume.
func (f *file) mayLead(ctx context.Context, other string) (_ bool, err error) {
	if f.own == nil {
		if f.own, err = f.volumeAt(ctx, f.path); err != nil {
			return false, err
		}
	}
	there, err := f.volumeAt(ctx, other)
	if there == nil || err != nil {
		return err == nil, err
	}
	before := f.own
	if f.own, err = f.volumeAt(ctx, f.path); before == nil || f.own == nil || err != nil {
		return false, err
	}
	changed := before.Physical != f.own.Physical || before.Modified != f.own.Modified
	return changed || there.Physical == f.own.Physical && there.Modified == f.own.Modified, nil
}

// volumeAt is the volume of a path; nil if it is none of an active storage pool, or one that libvirt can't describe.
func (f *file) volumeAt(ctx context.Context, path string) (*host.StorageVolume, error) {
	v, err := f.host.VolumeAt(ctx, path)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed) {
		return nil, nil
	}
	return &v, err
}

// leads reports whether a path leads to the file, or to an overlay of it. An image of a storage pool is listed, and asked for, itself.
func (f *file) leads(ctx context.Context, other string) (bool, error) {
	is, over, err := f.relate(ctx, other, image.HeadSize)
	return is || over, err
}

// relate reports whether a path leads to the file, or, by the first head bytes there, to an overlay of it. Where the host can't tell, a path is
// believed to be what it says.
func (f *file) relate(ctx context.Context, other string, head int) (is, over bool, err error) {
	if may, err := f.mayLead(ctx, other); err != nil || !may {
		return false, false, err
	}
	there, err := f.host.File(ctx, other, head)
	if errors.Is(err, host.ErrCannotTell) || errors.Is(err, host.ErrNotFound) {
		return false, false, nil
	}
	if err == nil && f.at == nil {
		var own host.File
		own, err = f.host.File(ctx, f.path, 0)
		if err = found(err); err == nil {
			f.at = &own.At // empty where the file is missing
		}
	}
	if err != nil || there.At == *f.at {
		return err == nil, false, err
	}
	named, _ := image.Backing(there.Head)
	if named == "" {
		return false, false, nil
	}
	f.below[other] = false // a chain that is a circle ends
	over, err = f.is(ctx, named, host.StorageVolume{Path: other})
	return false, over, err
}

// pathsIn are the absolute paths in the name of a backing file.
func pathsIn(named, overlay string) (paths []string) {
	text, isJSON := strings.CutPrefix(named, "json:")
	if !isJSON {
		if named = absolute(named, overlay); path.IsAbs(named) {
			paths = append(paths, named)
		}
		return paths
	}
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := decoder.Token()
		if err != nil {
			return paths
		}
		if part, _ := token.(string); path.IsAbs(strings.TrimPrefix(part, "file:")) {
			paths = append(paths, absolute(part, overlay))
		}
	}
}
