// Package rootfs makes of the layers of a container image the layers of a disk: each becomes a qcow2 image that has, over the images of the
// layers below, an ext4 file system with the files of all of them. A guest mounts it as its root, and needs nothing else for it.
//
// What is written depends on nothing but the layers, to the byte, so that images with the same lower layers share these. All file systems
// have the same size and geometry for the same reason; a guest grows its own, in an image of its own over these.
package rootfs

import "fmt"

// Size is the size of each file system, in bytes, whose group descriptors fill one block. Images with more content are refused.
const Size = 16 << 30

// HeadSize is the size of an image's head, in bytes.
const HeadSize = clusterSize

// FileSystem is an ext4 file system with the layers that were applied to it, the lowest one first.
type FileSystem struct {
	id   [16]byte
	root *node
	// layer is the number of the present layer, from 1 on.
	layer int
	// failed is why the file system is not complete.
	failed error
	blocks allocation
	inodes numbers
	meta   metadata
	// changed are the nodes that this layer has created or changed, and removed those that it has removed.
	changed map[*node]bool
	removed []uint32
	// skipped is how many entries and attributes of the present layer mean nothing here.
	skipped int
	// kept is the length of all names, targets and attributes, in bytes.
	kept int
	out  *image
	// cluster is the cluster of data that is being filled, and number is where it is; 0 if there is none.
	cluster []byte
	number  uint32
}

// New creates an empty file system. id is its UUID.
func New(id [16]byte) *FileSystem {
	f := &FileSystem{id: id, meta: newMetadata(), changed: map[*node]bool{}, cluster: make([]byte, clusterSize)}
	f.blocks.init()
	f.inodes.init()
	f.root = &node{number: rootNumber, mode: typeDirectory | 0o755, entries: map[string]*entry{}, links: 2}
	f.root.parent = f.root
	f.changed[f.root] = true
	f.inodes.directories[0] = 1
	return f
}

// Skipped is how many entries and attributes of the last layer were left out, as container engines do: AUFS's own files, and attributes
// of macOS.
func (f *FileSystem) Skipped() int { return f.skipped }

// errFull is the error of content that is too large.
var errFull = fmt.Errorf("the files of the image have no room in %d GiB", Size>>30)
