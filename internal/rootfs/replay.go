package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
)

// How a layer hides files of the layers below (https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts).
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
	// aufsMetadata begins the names of what AUFS keeps for itself, which are no whiteouts.
	aufsMetadata = ".wh..wh."
)

// maxSeconds is the last second that ext4 can represent, in 2446
// (https://www.kernel.org/doc/html/latest/filesystems/ext4/inodes.html#inode-timestamps).
const maxSeconds = 1<<31 - 1 + 3<<32

// maxEntries is how many entries a layer may have: those that create nothing, too.
const maxEntries = 1 << 20

// types are those of entries that become a file of their own.
var types = map[byte]uint16{
	tar.TypeReg: typeRegular, tar.TypeGNUSparse: typeRegular, tar.TypeDir: typeDirectory, tar.TypeSymlink: typeSymlink,
	tar.TypeChar: typeCharacter, tar.TypeBlock: typeBlock, tar.TypeFifo: typeFIFO,
}

// replay applies the entries of a layer.
func (f *FileSystem) replay(archive *tar.Reader) error {
	for entries := 0; ; entries++ {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entries == maxEntries:
			return fmt.Errorf("the layer has more than %d entries", maxEntries)
		}
		if err := f.apply(h, archive); err != nil {
			return fmt.Errorf("%.300q: %w", h.Name, err)
		}
	}
}

func (f *FileSystem) apply(h *tar.Header, content io.Reader) error {
	if err := checkRecords(h); err != nil || h.Typeflag == tar.TypeXGlobalHeader {
		return err
	}
	p, err := cleaned(h.Name)
	if err != nil {
		return err
	}
	dir, name := path.Split(p)
	switch {
	case p == "":
		if h.Typeflag != tar.TypeDir {
			return errors.New("the root is not a directory")
		}
		return f.describe(f.root, h)
	case slices.ContainsFunc(strings.Split(p, "/"), isAUFS):
		f.skipped++
		return nil
	case strings.HasPrefix(name, whiteout):
		return f.applyWhiteout(dir, name)
	}
	d, err := f.directory(dir, true)
	if err != nil {
		return err
	}
	if h.Typeflag == tar.TypeLink {
		return f.link(d, name, h)
	}
	t, ok := types[h.Typeflag]
	if !ok {
		return fmt.Errorf("entries of type %q are unknown", h.Typeflag)
	}
	if e := d.entries[name]; e != nil && e.entries != nil && t == typeDirectory {
		e.layer = f.layer // it replaces the one below, but not what is in it
		return f.describe(e.node, h)
	}
	if err := f.makeWay(d, name); err != nil {
		return err
	}
	n, err := f.newNode(t)
	if err != nil {
		return err
	}
	if err := f.attach(d, name, n); err != nil {
		return err
	}
	if err := f.describe(n, h); err != nil || t != typeRegular {
		return err
	}
	n.size = h.Size
	return f.writeData(n, content)
}

// cleaned returns a path without what means nothing in it; empty for the root.
func cleaned(name string) (string, error) {
	parts := strings.Split(name, "/")
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "." })
	switch {
	case len(name) > maxPath:
		return "", fmt.Errorf("its path has more than %d bytes", maxPath)
	case len(parts) > maxDepth:
		return "", fmt.Errorf("its path has more than %d directories", maxDepth)
	case slices.Contains(parts, ".."):
		return "", errors.New("its path has a \"..\", and could leave the root")
	case slices.ContainsFunc(parts, isOdd):
		return "", fmt.Errorf("a name has more than %d bytes, or a zero", maxName)
	}
	return strings.Join(parts, "/"), nil
}

// isOdd reports whether no file can have the name. That of a whiteout is none.
func isOdd(name string) bool {
	return len(strings.TrimPrefix(name, whiteout)) > maxName || strings.Contains(name, "\x00")
}

// isAUFS reports whether a file, and what is below it, is AUFS's own.
func isAUFS(name string) bool { return strings.HasPrefix(name, aufsMetadata) && name != opaqueWhiteout }

// isOfMacOS reports whether a record is an attribute that no other system has, which engines leave out.
func isOfMacOS(key string) bool {
	return strings.HasPrefix(key, "LIBARCHIVE.xattr.com.apple.") || strings.HasPrefix(key, "SCHILY.xattr.com.apple.")
}

// checkRecords refuses what an archive says of a file in a way that is not understood here.
func checkRecords(h *tar.Header) error {
	for key := range h.PAXRecords {
		isGlobal := h.Typeflag == tar.TypeXGlobalHeader && key != "comment"
		isBinary := strings.HasPrefix(key, "LIBARCHIVE.xattr.") && !isOfMacOS(key)
		if isGlobal || isBinary || strings.HasPrefix(key, "SCHILY.acl.") {
			return fmt.Errorf("its record %.100q is not supported", key)
		}
	}
	return nil
}

// makeWay removes the file that an entry replaces.
func (f *FileSystem) makeWay(d *node, name string) error {
	e := d.entries[name]
	switch {
	case e == nil:
		return nil
	case e.layer == f.layer:
		return errors.New("the layer has it twice")
	}
	if f.hide(d, name); d.entries[name] != nil {
		return errors.New("the layer has files in it, but it is no directory")
	}
	return nil
}

func (f *FileSystem) applyWhiteout(dir, name string) error {
	d, err := f.directory(dir, false)
	if errors.Is(err, errNoDirectory) {
		return nil // it hides nothing
	}
	hidden := strings.TrimPrefix(name, whiteout)
	switch {
	case err != nil:
		return err
	case name == opaqueWhiteout:
		f.hideAll(d)
	case hidden == "" || hidden == "." || hidden == ".." || strings.HasPrefix(hidden, whiteout):
		return errors.New("there are no such whiteouts")
	default:
		f.hide(d, hidden)
	}
	return nil
}

// link adds a hard link.
func (f *FileSystem) link(d *node, name string, h *tar.Header) error {
	target, err := cleaned(h.Linkname)
	if err != nil {
		return fmt.Errorf("hard link to %.300q: %w", h.Linkname, err)
	}
	dir, base := path.Split(target)
	from, err := f.directory(dir, false)
	if err != nil && !errors.Is(err, errNoDirectory) {
		return fmt.Errorf("hard link to %.300q: %w", h.Linkname, err)
	}
	var e *entry
	if err == nil {
		e = from.entries[base]
	}
	switch {
	case e == nil:
		return fmt.Errorf("hard link to %.300q, which is not there", h.Linkname)
	case e.entries != nil:
		return fmt.Errorf("hard link to %.300q, which is a directory", h.Linkname)
	}
	if was := d.entries[name]; was != nil && was.node == e.node && was.layer != f.layer {
		was.layer = f.layer
		return nil
	}
	if err := f.makeWay(d, name); err != nil {
		return err
	}
	return f.attach(d, name, e.node)
}

// describe sets what an entry says of its file.
func (f *FileSystem) describe(n *node, h *tar.Header) error {
	f.changed[n] = true
	for _, id := range []int{h.Uid, h.Gid} {
		if id < 0 || int64(id) >= math.MaxUint32 { // an int has 32 bits on some platforms
			return fmt.Errorf("its owner %d is no number of a user or group", id)
		}
	}
	n.uid, n.gid = uint32(h.Uid), uint32(h.Gid)
	n.mode = n.mode&typeMask | uint16(h.Mode&0o7777)
	n.seconds, n.nanoseconds = h.ModTime.Unix(), uint32(h.ModTime.Nanosecond())
	if n.seconds < math.MinInt32 || n.seconds > maxSeconds {
		return fmt.Errorf("its time %s can't be represented", h.ModTime.UTC())
	}
	if n.is(typeCharacter) || n.is(typeBlock) {
		if h.Devmajor < 0 || h.Devmajor >= 1<<12 || h.Devminor < 0 || h.Devminor >= 1<<20 {
			return fmt.Errorf("there is no device %d:%d", h.Devmajor, h.Devminor)
		}
		n.major, n.minor = uint32(h.Devmajor), uint32(h.Devminor)
	}
	if n.is(typeSymlink) {
		if h.Linkname == "" || len(h.Linkname) > maxPath || strings.Contains(h.Linkname, "\x00") {
			return fmt.Errorf("a target of %d bytes, or one with a zero, can't be represented", len(h.Linkname))
		}
		n.target, n.size, n.mode = h.Linkname, int64(len(h.Linkname)), typeSymlink|0o777
		if err := f.keep(len(n.target)); err != nil {
			return err
		}
	}
	return f.setAttributes(n, h)
}

func (f *FileSystem) setAttributes(n *node, h *tar.Header) error {
	n.attributes = nil
	for key, value := range h.PAXRecords {
		if isOfMacOS(key) {
			f.skipped++
			continue
		}
		name, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		if !ok {
			continue
		}
		if n.attributes == nil {
			n.attributes = map[string][]byte{}
		}
		n.attributes[name] = []byte(value)
		if err := f.keep(len(name) + len(value)); err != nil {
			return err
		}
	}
	_, err := attributeBlock(n.attributes)
	return err
}
