package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
)

// diskFolder is the folder of a container disk's file, by KubeVirt's convention
// (https://kubevirt.io/user-guide/storage/disks_and_volumes/#containerdisk).
const diskFolder = "disk"

// Layer returns the unpacked tar archive of a layer.
type Layer func() (io.ReadCloser, error)

// File is a file of a container image while it is read.
type File struct {
	// Path is the path in the image, without a leading slash.
	Path string
	// Size is in bytes, as announced by the archive.
	Size int64
	io.Reader
}

// finder searches the layers of an image from the top down, and records what they hide in the layers below.
type finder struct {
	// wanted is the path of the file; empty for the only one below /disk.
	wanted string
	// take is called with the file, once.
	take func(File) error

	taken  string
	hidden map[string]bool
	// opaque are folders whose content in lower layers is hidden.
	opaque map[string]bool
	// kept is the total length in bytes of the recorded names, including those of the current layer.
	kept int
}

// FindDisk calls take with the one disk of an image: the file at a path, or else the only one below /disk. layers begin with the lowest
// one. Each is read at most once, sequentially, and not at all if the layers above hide all of it. A second file is detected only after
// take was called: the error then makes its result invalid.
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

// isDone reports whether lower layers can have no effect.
func (f *finder) isDone() bool {
	if f.wanted != "" {
		return f.taken != "" || f.isHidden(f.wanted)
	}
	return f.opaque[diskFolder] || f.isHidden(diskFolder)
}

// matters reports whether a path may hide the disk. Other paths are not recorded: an archive may have millions.
func (f *finder) matters(p string) bool {
	if f.wanted != "" {
		return p == "." || p == f.wanted || strings.HasPrefix(f.wanted, p+"/")
	}
	return p == "." || p == diskFolder || strings.HasPrefix(p, diskFolder+"/")
}

// isHidden reports whether a layer above has the path, or has removed it or one of its parent folders.
func (f *finder) isHidden(p string) bool {
	if f.hidden[p] {
		return true
	}
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		if f.hidden[dir] || f.opaque[dir] {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// The limits of a layer: the number of relevant names, the bytes of one name (Linux allows no longer paths) and of all of them, and the
// bytes after the archive's end, because archives are padded.
const (
	maxNames = 10_000
	maxName  = 4 << 10
	maxKept  = 4 << 20
	maxTail  = 1 << 20
)

func (f *finder) search(layer Layer) (err error) {
	r, err := layer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	// A layer hides files in the layers below, not in itself.
	hides := &finder{hidden: map[string]bool{}, opaque: map[string]bool{}}
	in := &source{r: r}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if in.err != nil {
			return in.err
		}
		if err != nil {
			return fmt.Errorf("%w: a layer is no tar archive: %w", ErrUntrusted, err)
		}
		if err := f.entry(h, entryReader{archive, in}, hides); err != nil {
			return err
		}
	}
	maps.Copy(f.hidden, hides.hidden)
	maps.Copy(f.opaque, hides.opaque)
	return Drain(in)
}

// Drain reads the rest of a layer after its archive, because its digest is verified at the end.
func Drain(r io.Reader) error {
	if _, err := io.CopyN(io.Discard, r, maxTail+1); err == nil {
		return fmt.Errorf("%w: a layer goes on for more than %d bytes after the end of its tar archive", ErrUntrusted, maxTail)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// entryReader distinguishes a truncated file from a layer that can't be read.
type entryReader struct {
	io.Reader
	in *source
}

func (r entryReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case r.in.err != nil:
		return n, r.in.err
	}
	return n, fmt.Errorf("%w: a layer ends in the middle of the file: %w", ErrUntrusted, err)
}

// The names of whiteout files (OCI image layer filesystem changeset, whiteouts).
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

func (f *finder) entry(h *tar.Header, content io.Reader, hides *finder) error {
	if long := max(len(h.Name), len(h.Linkname)); long > maxName {
		return fmt.Errorf("%w: an entry of a layer has a name of %d bytes, and no file has one of more than %d", ErrUntrusted, long,
			maxName)
	}
	p, err := clean(h.Name)
	if err != nil {
		return err
	}
	dir, base := path.Dir(p), path.Base(p)
	removed, isWhiteout := strings.CutPrefix(base, whiteout)
	switch {
	case base == opaqueWhiteout:
		return f.hide(hides, hides.opaque, dir)
	case isWhiteout && (removed == "" || removed == "." || removed == ".."):
		return fmt.Errorf("%w: a layer removes a file without a name: %q", ErrUntrusted, h.Name)
	case isWhiteout:
		return f.hide(hides, hides.hidden, path.Join(dir, removed))
	case h.Typeflag == tar.TypeDir:
		return nil // a folder is merged with that of the same name below
	}
	if err := f.hide(hides, hides.hidden, p); err != nil {
		return err
	}
	if f.isHidden(p) || !f.isWanted(p) {
		return nil
	}
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse { // whose holes are read as zeros
		return fmt.Errorf("%w: %q is not a plain file", ErrUntrusted, "/"+p)
	}
	if f.taken != "" {
		return fmt.Errorf("%w: it has %q and %q, and a container disk has one file below /%s. Name the one with path",
			ErrUntrusted, "/"+f.taken, "/"+p, diskFolder)
	}
	f.taken = p
	return f.take(File{Path: p, Size: h.Size, Reader: content})
}

// hide records a path that a layer hides in the layers below.
func (f *finder) hide(hides *finder, in map[string]bool, p string) error {
	if f.matters(p) && !in[p] {
		in[strings.Clone(p)] = true // a substring would keep the whole name in memory
		f.kept += len(p)
	}
	if f.kept > maxKept || len(f.hidden)+len(f.opaque)+len(hides.hidden)+len(hides.opaque) > maxNames {
		return fmt.Errorf("%w: it has more than %d names below /%s, or longer ones than %d bytes together", ErrUntrusted, maxNames,
			diskFolder, maxKept)
	}
	return nil
}

func (f *finder) isWanted(p string) bool {
	if f.wanted != "" {
		return p == f.wanted
	}
	return strings.HasPrefix(p, diskFolder+"/")
}

// clean returns the path of an entry, which must not lead out of the image.
func clean(name string) (string, error) {
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: an entry of a layer leads out of it: %q", ErrUntrusted, name)
		}
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}
