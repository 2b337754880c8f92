// Package rootfs makes of the layers of a container image the layers of a disk: each becomes a qcow2 image that has, over the images of the
// layers below, an ext4 file system with the files of all of them. A guest mounts it as its root, and needs nothing else for it.
//
// What is written depends on nothing but the layers, to the byte, so that images with the same lower layers share these. All file systems
// have the same size and geometry for the same reason; a guest grows its own, in an image of its own over these.
package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
)

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

// Apply applies one more layer, a tar archive, and writes what it changes as a qcow2 image over backing, the name of the image of the layer
// below in the same folder; empty for the lowest layer. The image begins with head, and out gets all that is behind. An error that is not
// one of layer or out is that of the first entry which can't be represented, or isn't allowed. The file system is unusable after any error.
func (f *FileSystem) Apply(layer io.Reader, out io.Writer, backing string) (head []byte, err error) {
	if f.failed != nil {
		return nil, f.failed
	}
	defer func() {
		if f.failed = err; err != nil {
			head = nil
		}
	}()
	if (backing == "") != (f.layer == 0) {
		return nil, errors.New("the lowest layer, and only that, has no backing image")
	}
	f.layer++
	f.out = newImage(out)
	f.blocks.align()
	if err := f.replay(tar.NewReader(layer)); err != nil {
		return nil, err
	}
	if err := f.commit(); err != nil {
		return nil, err
	}
	changes, err := f.encode()
	if err != nil {
		return nil, err
	}
	clear(f.changed)
	f.removed = nil
	return f.out.finish(backing, changes)
}

// errFull is the error of content that is too large.
var errFull = fmt.Errorf("the files of the image have no room in %d GiB", Size>>30)
