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
	// own is the volume of that path, or nil where it is none, once isKnown.
	own     *host.StorageVolume
	isKnown bool
	// maybe and below are what was found out of other paths.
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

// mayLead reports whether a path may lead to the file. Another volume does not, if its length or its time differ, or if the file is no volume.
func (f *file) mayLead(ctx context.Context, other string) (bool, error) {
	there, err := f.host.VolumeAt(ctx, other)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !f.isKnown {
		own, err := f.host.VolumeAt(ctx, f.path)
		if err == nil {
			f.own = &own
		} else if !errors.Is(err, host.ErrNotFound) && !errors.Is(err, host.ErrUndescribed) {
			return false, err
		}
		f.isKnown = true
	}
	return f.own != nil && there.Physical == f.own.Physical && there.Modified == f.own.Modified, nil
}

// leads reports whether a path leads to the file, or to an overlay of it. An image of a storage pool is asked for itself.
func (f *file) leads(ctx context.Context, other string) (bool, error) {
	is, over, err := f.relate(ctx, other)
	return is || over, err
}

// relate reports whether a path leads to the file, or to an overlay of it. Where the host can't tell, the last part of the path decides.
func (f *file) relate(ctx context.Context, other string) (is, over bool, err error) {
	if may, err := f.mayLead(ctx, other); err != nil || !may {
		return false, false, err
	}
	own, err := f.host.File(ctx, f.path, 0)
	var there host.File
	if err == nil {
		there, err = f.host.File(ctx, other, image.HeadSize)
	}
	if errors.Is(err, host.ErrCannotTell) {
		return path.Base(other) == path.Base(f.path), false, nil
	}
	if err != nil || there.At == own.At {
		return err == nil, false, found(err)
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
