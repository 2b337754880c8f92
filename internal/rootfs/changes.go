//go:build !guestinit

package rootfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A layer's image also has, outside of what a guest can read, the files that it has changed, so that another layer can be applied to it
// without the archives of those below.

// maxChanges is the maximal size of the changes of a layer, in bytes.
const maxChanges = 256 << 20

// change is a file that was changed, or removed if it has no mode. Names are bytes, in any encoding.
type change struct {
	Number         uint32
	Mode           uint16 `json:",omitempty"`
	UID, GID       uint32
	Size           int64
	Seconds        int64
	Nanoseconds    uint32
	Major, Minor   uint32
	Target         []byte            `json:",omitempty"`
	Attributes     map[string][]byte `json:",omitempty"`
	Extents        []extent          `json:",omitempty"`
	Leaf           uint32            `json:",omitempty"`
	AttributeBlock uint32            `json:",omitempty"`
	Names          [][]byte          `json:",omitempty"`
	Numbers        []uint32          `json:",omitempty"` // of the files with these names
}

// counters are the first of the changes.
type counters struct{ NextBlock, NextNumber uint32 }

// encode returns what the layer has changed.
func (f *FileSystem) encode() ([]byte, error) {
	var b bytes.Buffer
	// With more than one goroutine, or another level, the same layers would become other images.
	packed, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, err
	}
	to := json.NewEncoder(packed)
	err = to.Encode(counters{f.blocks.next, f.inodes.next})
	for _, number := range f.removed {
		err = errors.Join(err, to.Encode(change{Number: number}))
	}
	for _, n := range f.sorted() {
		c := change{
			Number: n.number, Mode: n.mode, UID: n.uid, GID: n.gid, Size: n.size, Seconds: n.seconds, Nanoseconds: n.nanoseconds,
			Major: n.major, Minor: n.minor,
			Target: []byte(n.target), Attributes: n.attributes, Extents: n.extents, Leaf: n.leaf, AttributeBlock: n.attributeBlock,
		}
		for _, name := range n.ordered() {
			c.Names, c.Numbers = append(c.Names, []byte(name)), append(c.Numbers, n.entries[name].number)
		}
		err = errors.Join(err, to.Encode(c))
	}
	err = errors.Join(err, packed.Close())
	return b.Bytes(), err
}

// errImage is the error of an image that Apply has not written.
var errImage = errors.New("it is not the image of a layer, or it was written to")

// Open returns the file system that Apply has written to the images, the lowest one first, so that another layer can be applied.
func Open(id [16]byte, images []io.ReaderAt) (*FileSystem, error) {
	f := New(id)
	clear(f.changed)
	f.inodes.directories[0] = 0 // that of the root is in the images
	files := map[uint32]change{}
	for n, i := range images {
		if err := f.load(i, files); err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	f.layer = len(images)
	if len(images) == 0 {
		return New(id), nil
	}
	if err := f.build(files); err != nil {
		return nil, err
	}
	clear(f.changed)
	clear(f.meta.changed)
	return f, nil
}

// load reads the changes of one layer.
func (f *FileSystem) load(from io.ReaderAt, files map[uint32]change) error {
	head := make([]byte, headerLength+8+changesLength)
	if _, err := from.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	record := head[headerLength:]
	if binary.BigEndian.Uint32(record) != changesExtension || binary.BigEndian.Uint32(record[4:]) != changesLength {
		return errImage
	}
	at, length := binary.BigEndian.Uint64(record[8:]), binary.BigEndian.Uint64(record[16:])
	if length > maxChanges || at > 2*Size {
		return errImage
	}
	packed := make([]byte, length)
	if _, err := from.ReadAt(packed, int64(at)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if sum := sha256.Sum256(packed); !bytes.Equal(sum[:], record[24:]) {
		return errImage
	}
	r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChanges))
	if err != nil {
		return err
	}
	defer r.Close()
	all := json.NewDecoder(r)
	var c counters
	if err := all.Decode(&c); err != nil {
		return err
	}
	f.blocks.next, f.inodes.next = c.NextBlock, c.NextNumber
	for {
		var c change
		if err := all.Decode(&c); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if c.Mode == 0 {
			delete(files, c.Number)
		} else {
			files[c.Number] = c
		}
	}
}

// build creates the files, and renders the metadata that the images have.
func (f *FileSystem) build(files map[uint32]change) error {
	if f.blocks.next > blocks || f.inodes.next > groups*groupInodes+1 {
		return errImage
	}
	nodes := map[uint32]*node{}
	for number, c := range files {
		n, err := f.restore(c)
		if err != nil {
			return err
		}
		nodes[number] = n
	}
	root := nodes[rootNumber]
	if root == nil || root.entries == nil {
		return errImage
	}
	f.root, root.parent = root, root
	for number, c := range files {
		if err := f.connect(nodes, nodes[number], c); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := f.renderAll(n); err != nil {
			return err
		}
	}
	f.renderJournal()
	f.renderGroups()
	return nil
}

// restore creates a file without its entries.
func (f *FileSystem) restore(c change) (*node, error) {
	n := &node{
		number: c.Number, mode: c.Mode, uid: c.UID, gid: c.GID, size: c.Size, seconds: c.Seconds, nanoseconds: c.Nanoseconds,
		major: c.Major, minor: c.Minor,
		target: string(c.Target), attributes: c.Attributes, extents: c.Extents, leaf: c.Leaf, attributeBlock: c.AttributeBlock,
	}
	isDirectory := n.is(typeDirectory)
	if c.Number == 0 || c.Number >= f.inodes.next || len(c.Names) != len(c.Numbers) || !isDirectory && len(c.Names) > 0 ||
		len(c.Target) > maxPath {
		return nil, errImage
	}
	if isDirectory {
		n.entries, n.links = map[string]*entry{}, 2
		f.inodes.directories[(c.Number-1)/groupInodes]++
	}
	f.inodes.mark(c.Number, true)
	single := []extent{{Start: n.leaf, Count: min(n.leaf, 1)}, {Start: n.attributeBlock, Count: min(n.attributeBlock, 1)}}
	for _, e := range append(single, n.extents...) {
		if e.Count > maxExtent || e.Start >= blocks || e.Start+e.Count > blocks {
			return nil, errImage
		}
		f.blocks.mark(e, true)
	}
	return n, f.keep(len(n.target) + sizeOf(n.attributes))
}

func sizeOf(attributes map[string][]byte) (bytes int) {
	for name, value := range attributes {
		bytes += len(name) + len(value)
	}
	return bytes
}

// connect adds the entries of a directory.
func (f *FileSystem) connect(nodes map[uint32]*node, d *node, c change) error {
	for i, name := range c.Names {
		n := nodes[c.Numbers[i]]
		if n == nil || n == f.root || n.parent != nil {
			return errImage
		}
		if err := f.attach(d, string(name), n); err != nil {
			return err
		}
	}
	return nil
}

// renderAll sets all blocks of the metadata of a file.
func (f *FileSystem) renderAll(n *node) error {
	if n.entries != nil {
		content := n.directoryBlocks()
		if n.parent == nil || len(content) != len(n.places()) {
			return errImage
		}
		f.renderDirectory(n, content)
	}
	return f.render(n)
}
