// Init uses this package for blank disks: without layers, it is smaller.
//go:build !guestinit

package rootfs

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"io"
)

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
	f.skipped = 0
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
	return f.out.finish(backing, changes, sha256.Sum256(changes))
}

// ApplyTo applies one more layer, and writes what it changes to a disk, which has what ApplyTo has written of the layers below, and else
// zeros. Its errors are like those of Apply.
func (f *FileSystem) ApplyTo(layer io.Reader, disk io.WriterAt) (err error) {
	if f.failed != nil {
		return f.failed
	}
	defer func() { f.failed = err }()
	if f.layer++; f.layer == 1 {
		f.out = newImage(nil)
	}
	f.out.disk = disk
	f.blocks.align()
	if err = f.replay(tar.NewReader(layer)); err == nil {
		err = f.commit()
	}
	clear(f.changed)
	f.removed = nil
	return err
}
