package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// diskFolder is where the file of a container disk is, by the convention of KubeVirt
// (https://kubevirt.io/user-guide/storage/disks_and_volumes/#containerdisk).
const diskFolder = "disk"

// Layer gives the tar archive of a layer, unpacked.
type Layer func() (io.ReadCloser, error)

// File is a file of a container image, while it is read.
type File struct {
	// Path is the file's in the image, without a leading slash.
	Path string
	// Size is in bytes, as the archive announces it.
	Size int64
	io.Reader
}

// finder looks through the layers of an image from the top down, and keeps in mind what they hide of those below.
type finder struct {
	// wanted is the path of the file; empty for the only one below /disk.
	wanted string
	// take is given the file, once.
	take func(File) error

	taken  string
	hidden map[string]bool
	// opaque are folders of which nothing below counts.
	opaque map[string]bool
}

// FindDisk gives take the one file of an image that is a disk: that at a path, or else the only one below /disk. Layers are
// those of the image, the lowest first, and each is read at most once, straight through, and not at all where the layers above
// hide all of it. That there is only one file shows at the end: then what take has done is for nothing, and the error says so.
func FindDisk(layers []Layer, at string, take func(File) error) error {
	f := finder{wanted: strings.TrimPrefix(path.Clean("/"+at), "/"), take: take, hidden: map[string]bool{}, opaque: map[string]bool{}}
	for n := len(layers) - 1; n >= 0 && !f.isDone(); n-- {
		if err := f.search(layers[n]); err != nil {
			return err
		}
	}
	if f.taken == "" {
		return f.nothing()
	}
	return nil
}

func (f *finder) nothing() error {
	if f.wanted != "" {
		return fmt.Errorf("%w: there is no file /%s in it", ErrUntrusted, f.wanted)
	}
	return fmt.Errorf("%w: there is no file below /%s in it, so it is no container disk. Name the file with path if it is elsewhere",
		ErrUntrusted, diskFolder)
}

// isDone tells that nothing in lower layers could matter.
func (f *finder) isDone() bool {
	if f.wanted != "" {
		return f.taken != "" || f.isHidden(f.wanted)
	}
	return f.opaque[diskFolder] || f.isHidden(diskFolder)
}

// isHidden tells whether a layer above has the path, or has removed it or a folder that it is in.
func (f *finder) isHidden(p string) bool {
	if f.hidden[p] {
		return true
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if f.hidden[dir] || f.opaque[dir] {
			return true
		}
	}
	return false
}

func (f *finder) search(layer Layer) (err error) {
	r, err := layer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	// What this layer hides, it hides of those below, not of itself.
	hides, archive := &finder{hidden: map[string]bool{}, opaque: map[string]bool{}}, tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: a layer is no tar archive: %w", ErrUntrusted, err)
		}
		if err := f.entry(h, archive, hides); err != nil {
			return err
		}
	}
	for p := range hides.hidden {
		f.hidden[p] = true
	}
	for p := range hides.opaque {
		f.opaque[p] = true
	}
	return nil
}

// The names of files that remove others (OCI image layer filesystem changeset, whiteouts).
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

func (f *finder) entry(h *tar.Header, content io.Reader, hides *finder) error {
	p, err := clean(h.Name)
	if err != nil {
		return err
	}
	dir, base := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case base == opaqueWhiteout:
		hides.opaque[dir] = true
		return nil
	case strings.HasPrefix(base, whiteout):
		hides.hidden[path.Join(dir, strings.TrimPrefix(base, whiteout))] = true
		return nil
	case h.Typeflag == tar.TypeDir:
		return nil // a folder adds to that of the same name below
	}
	hides.hidden[p] = true
	if f.isHidden(p) || !f.isWanted(p) {
		return nil
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%w: /%s is not a plain file", ErrUntrusted, p)
	}
	if f.taken != "" {
		return fmt.Errorf("%w: it has /%s and /%s, and a container disk has one file below /%s. Name the one with path",
			ErrUntrusted, f.taken, p, diskFolder)
	}
	f.taken = p
	return f.take(File{Path: p, Size: h.Size, Reader: content})
}

func (f *finder) isWanted(p string) bool {
	if f.wanted != "" {
		return p == f.wanted
	}
	return strings.HasPrefix(p, diskFolder+"/")
}

// clean is the path of an entry, which must not lead out of the image.
func clean(name string) (string, error) {
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: an entry of a layer leads out of it: %q", ErrUntrusted, name)
		}
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}
