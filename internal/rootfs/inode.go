package rootfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var le = binary.LittleEndian

const (
	// maxExtent is the maximal number of blocks of an extent, and maxExtents of extents in the block of a file.
	maxExtent  = 32768
	maxExtents = (blockSize - 12) / 12
	// inInode is how many extents an inode has room for, and shortTarget how many bytes of the target of a symbolic link.
	inInode     = 4
	shortTarget = 59
)

// writeFile writes a file's metadata, but not the entries of a directory.
func (f *FileSystem) writeFile(n *node) error {
	if n.is(typeSymlink) && len(n.target) > shortTarget && len(n.extents) == 0 {
		block, err := f.blocks.takeMeta()
		if err != nil {
			return err
		}
		n.extents = []extent{{Start: block, Count: 1}}
	}
	if err := f.takeBlock(&n.leaf, len(n.extents) > inInode); err != nil {
		return err
	}
	if err := f.takeBlock(&n.attributeBlock, len(n.attributes) > 0); err != nil {
		return err
	}
	return f.render(n)
}

// takeBlock takes or gives up a block of metadata.
func (f *FileSystem) takeBlock(block *uint32, needed bool) (err error) {
	switch {
	case !needed:
		f.freeBlock(block)
	case *block == 0:
		*block, err = f.blocks.takeMeta()
	}
	return err
}

// render sets the blocks of a file's metadata, which are taken already.
func (f *FileSystem) render(n *node) error {
	if len(n.extents) > maxExtents {
		return fmt.Errorf("a file is in more than %d parts", maxExtents)
	}
	if n.is(typeSymlink) && len(n.extents) > 0 {
		f.meta.set(n.extents[0].Start, padded([]byte(n.target)))
	}
	if n.leaf != 0 {
		f.meta.set(n.leaf, padded(n.extentTree(maxExtents)))
	}
	if n.attributeBlock != 0 {
		b, err := attributeBlock(n.attributes)
		if err != nil {
			return err
		}
		f.meta.set(n.attributeBlock, b)
	}
	block, offset := f.blocks.place(n.number)
	copy(f.meta.at(block)[offset:], n.inode())
	return nil
}

func padded(b []byte) []byte { return append(b, make([]byte, blockSize-len(b))...) }

// inode is the inode (https://www.kernel.org/doc/html/latest/filesystems/ext4/inodes.html).
func (n *node) inode() []byte {
	b := make([]byte, inodeSize)
	put16 := func(at int, v uint32) { le.PutUint16(b[at:], uint16(v)) }
	put32 := func(at int, v uint32) { le.PutUint32(b[at:], v) }
	put16(0x0, uint32(n.mode))
	put16(0x2, n.uid)
	put16(0x78, n.uid>>16)
	put16(0x18, n.gid)
	put16(0x7a, n.gid>>16)
	put32(0x4, uint32(n.size))
	put32(0x6c, uint32(n.size>>32))
	for _, at := range [][2]int{{0x8, 0x8c}, {0xc, 0x84}, {0x10, 0x88}, {0x90, 0x94}} { // accessed, changed, modified, created
		put32(at[0], uint32(n.seconds))
		put32(at[1], n.nanoseconds<<2|uint32((n.seconds-int64(int32(n.seconds)))>>32)&3)
	}
	links := uint32(n.links)
	if n.entries != nil && links > maxDirect {
		links = 1 // they aren't counted
	}
	put16(0x1a, links)
	put16(0x80, 32) // how much larger it is than in ext2
	copy(b[0x28:0x64], n.content())
	if n.hasExtents() {
		put32(0x20, 0x80000)
	}
	count := uint32(0)
	for _, e := range n.extents {
		count += e.Count
	}
	for _, block := range []uint32{n.leaf, n.attributeBlock} {
		if block != 0 {
			count++
		}
	}
	put32(0x1c, count*(blockSize/512))
	put32(0x68, n.attributeBlock)
	return b
}

func (n *node) hasExtents() bool {
	return n.is(typeRegular) || n.is(typeDirectory) || n.is(typeSymlink) && len(n.target) > shortTarget
}

// content is i_block: of 60 bytes.
func (n *node) content() []byte {
	switch {
	case n.leaf != 0:
		b := make([]byte, 0, 60)
		for _, v := range []uint16{0xf30a, 1, inInode, 1} { // an index with one entry
			b = le.AppendUint16(b, v)
		}
		b = le.AppendUint32(append(b, make([]byte, 8)...), n.leaf)
		return b
	case n.hasExtents():
		return n.extentTree(inInode)
	case n.is(typeSymlink):
		return []byte(n.target)
	case n.major < 1<<8 && n.minor < 1<<8:
		return le.AppendUint32(nil, n.major<<8|n.minor)
	}
	return append(make([]byte, 4), le.AppendUint32(nil, n.minor&0xff|n.major<<8|n.minor&^0xff<<12)...)
}

// extentTree is a leaf with all extents, where there is room for maximal ones.
func (n *node) extentTree(maximal uint16) []byte {
	b := le.AppendUint16(nil, 0xf30a)
	b = le.AppendUint16(b, uint16(len(n.extents)))
	b = le.AppendUint16(b, maximal)
	b = append(b, make([]byte, 6)...)
	for _, e := range n.extents {
		b = le.AppendUint32(b, e.First)
		b = le.AppendUint16(b, uint16(e.Count))
		b = le.AppendUint16(b, 0)
		b = le.AppendUint32(b, e.Start)
	}
	return b
}

// namespaces are the extended attributes that are represented as they are. POSIX ACLs would not be.
var namespaces = map[string]byte{"user.": 1, "trusted.": 4, "security.": 6}

type attribute struct {
	namespace byte
	name      string
	value     []byte
}

// attributeBlock is the block of a file's extended attributes (https://www.kernel.org/doc/html/latest/filesystems/ext4/attributes.html).
func attributeBlock(attributes map[string][]byte) ([]byte, error) {
	all := make([]attribute, 0, len(attributes))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		prefix, name, _ := strings.Cut(key, ".")
		namespace := namespaces[prefix+"."]
		isOdd := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
		if namespace == 0 || name == "" || len(name) > maxName || isOdd {
			return nil, fmt.Errorf("the extended attribute %.300q can't be represented", key)
		}
		all = append(all, attribute{namespace, name, attributes[key]})
	}
	slices.SortFunc(all, func(a, b attribute) int {
		if a.namespace != b.namespace {
			return int(a.namespace) - int(b.namespace)
		}
		if len(a.name) != len(b.name) {
			return len(a.name) - len(b.name)
		}
		return strings.Compare(a.name, b.name)
	})
	b := make([]byte, blockSize)
	for at, v := range []uint32{0xea020000, 1, 1} { // magic, references, blocks
		le.PutUint32(b[4*at:], v)
	}
	at, end, sum := 32, blockSize, uint32(0)
	for _, a := range all {
		value := (len(a.value) + 3) &^ 3
		length := (16 + len(a.name) + 3) &^ 3
		if end -= value; at+length+4 > end {
			return nil, fmt.Errorf("its extended attributes have more than %d bytes", blockSize)
		}
		copy(b[end:], a.value)
		hash := uint32(0)
		for _, c := range []byte(a.name) {
			hash = hash<<5 ^ hash>>27 ^ uint32(c)
		}
		for v := b[end : end+value]; len(v) > 0; v = v[4:] {
			hash = hash<<16 ^ hash>>16 ^ le.Uint32(v)
		}
		b[at], b[at+1] = byte(len(a.name)), a.namespace
		if value > 0 {
			le.PutUint16(b[at+2:], uint16(end))
		}
		le.PutUint32(b[at+8:], uint32(len(a.value)))
		le.PutUint32(b[at+12:], hash)
		copy(b[at+16:], a.name)
		at += length
		sum = sum<<16 ^ sum>>16 ^ hash
	}
	le.PutUint32(b[12:], sum)
	return b, nil
}

// errNumbers is the error of too many files.
var errNumbers = errors.New("all layers together have more than a million files")
