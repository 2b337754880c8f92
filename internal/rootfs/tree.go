package rootfs

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// The types of files, as in st_mode.
const (
	typeMask      = 0o170000
	typeFIFO      = 0o010000
	typeCharacter = 0o020000
	typeDirectory = 0o040000
	typeBlock     = 0o060000
	typeRegular   = 0o100000
	typeSymlink   = 0o120000
)

// The limits of what ext4 and Linux can represent, and of what is kept in memory.
const (
	maxName   = 255
	maxPath   = 4095
	maxDepth  = 255
	maxLinks  = 65_000
	maxHops   = 40
	maxSteps  = 1_000
	maxKept   = 64 << 20
	maxDirect = 64_998 // subfolders, before ext4 no longer counts them
)

// node is a file of any type.
type node struct {
	number       uint32
	mode         uint16 // with its type
	uid, gid     uint32
	size         int64 // in bytes
	seconds      int64
	nanoseconds  uint32
	links        int
	major, minor uint32
	target       string // of a symbolic link
	attributes   map[string][]byte
	extents      []extent
	// leaf is the block of extents that the inode has no room for, and attributeBlock that of extended attributes; 0 if there is none.
	leaf, attributeBlock uint32
	// entries are those of a directory, nil for other files.
	entries map[string]*entry
	parent  *node
	last    int // the highest entry.order
	// opaque is the layer that has hidden all of the directory that lower layers have.
	opaque int
}

// extent are blocks in a row.
type extent struct{ First, Count, Start uint32 }

// entry is a name in a directory.
type entry struct {
	*node
	// layer is the one that has the name.
	layer int
	// order is the place in the directory.
	order int
}

func (n *node) is(t uint16) bool { return n.mode&typeMask == t }

// ordered returns the names of a directory in the order in which they were added.
func (n *node) ordered() []string {
	return slices.SortedFunc(maps.Keys(n.entries), func(a, b string) int { return n.entries[a].order - n.entries[b].order })
}

// attach adds a name to a directory.
func (f *FileSystem) attach(d *node, name string, n *node) error {
	if err := f.keep(len(name)); err != nil {
		return err
	}
	d.last++
	d.entries[name] = &entry{node: n, layer: f.layer, order: d.last}
	f.changed[d], f.changed[n] = true, true
	if n.entries != nil {
		n.parent = d
		d.links++
		return nil
	}
	if n.links++; n.links > maxLinks {
		return fmt.Errorf("the file has more than %d hard links", maxLinks)
	}
	return nil
}

// keep counts bytes that are kept in memory.
func (f *FileSystem) keep(bytes int) error {
	if f.kept += bytes; f.kept > maxKept {
		return fmt.Errorf("the names, link targets and extended attributes of all files have more than %d MiB", maxKept>>20)
	}
	return nil
}

// detach removes a name, and the file with its last one. A directory loses all that is in it.
func (f *FileSystem) detach(d *node, name string) {
	n := d.entries[name].node
	delete(d.entries, name)
	f.kept -= len(name)
	f.changed[d], f.changed[n] = true, true
	n.links--
	if n.entries != nil {
		d.links--
		for _, below := range n.ordered() {
			f.detach(n, below)
		}
		n.links = 0
	}
	if n.links == 0 {
		f.free(n)
	}
}

// hide removes what lower layers have of a name.
func (f *FileSystem) hide(d *node, name string) {
	e := d.entries[name]
	if e == nil {
		return
	}
	if e.entries != nil {
		f.hideAll(e.node)
	}
	if e.layer != f.layer && len(e.entries) == 0 {
		f.detach(d, name)
	}
}

// hideAll removes what lower layers have of the content of a directory.
func (f *FileSystem) hideAll(d *node) {
	if d.opaque == f.layer {
		return
	}
	d.opaque = f.layer
	for _, name := range d.ordered() {
		f.hide(d, name)
	}
}

// errNoDirectory is the error of a directory that is not there.
var errNoDirectory = errors.New("there is no such directory")

// directory returns that of a path, where create the missing ones are created. Symbolic links are followed as by a process whose root this
// is.
func (f *FileSystem) directory(p string, create bool) (*node, error) {
	d, hops := f.root, 0
	rest := strings.Split(p, "/")
	for steps := 0; len(rest) > 0; steps++ {
		name := rest[0]
		rest = rest[1:]
		switch {
		case steps > maxSteps:
			return nil, fmt.Errorf("the path of its directory has more than %d steps", maxSteps)
		case name == "" || name == ".":
			continue
		case name == ".." && d == f.root:
			return nil, errors.New("a symbolic link in its path leaves the root")
		case name == "..":
			d = d.parent
			continue
		}
		e := d.entries[name]
		switch {
		case e == nil && !create:
			return nil, errNoDirectory
		case e == nil:
			made, err := f.newDirectory(d, name)
			if err != nil {
				return nil, err
			}
			d = made
		case e.is(typeSymlink):
			if hops++; hops > maxHops {
				return nil, fmt.Errorf("its path has more than %d symbolic links", maxHops)
			}
			if path.IsAbs(e.target) {
				d = f.root
			}
			rest = append(strings.Split(e.target, "/"), rest...)
		case e.entries == nil:
			return nil, fmt.Errorf("%q in its path is not a directory", name)
		default:
			d = e.node
		}
	}
	return d, nil
}

// newDirectory creates the directory of an entry without one of its own, as container runtimes do.
func (f *FileSystem) newDirectory(d *node, name string) (*node, error) {
	if len(name) > maxName {
		return nil, errors.New("a symbolic link in its path has a name that is too long")
	}
	made, err := f.newNode(typeDirectory)
	if err != nil {
		return nil, err
	}
	made.mode |= 0o755
	return made, f.attach(d, name, made)
}

func (f *FileSystem) newNode(mode uint16) (*node, error) {
	n := &node{mode: mode}
	if mode == typeDirectory {
		n.entries, n.links = map[string]*entry{}, 2
	}
	var err error
	n.number, err = f.inodes.take(mode == typeDirectory)
	return n, err
}
