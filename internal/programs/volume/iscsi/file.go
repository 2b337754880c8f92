package iscsi

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/blank"
)

// File is a disk in a file, which may be sparse, or on a block device.
type File struct {
	*os.File
	size atomic.Int64
}

// OpenFile opens a file, not by a link, or a block device. The disk has its length, until Extend.
func OpenFile(path string, readOnly bool) (*File, error) {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	file, err := os.OpenFile(path, mode|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f := &File{File: file}
	f.size.Store(size)
	return f, nil
}

// Size is the length in bytes.
func (f *File) Size() int64 { return f.size.Load() }

// Extend makes a file longer, also on the disk, and calls noted before the disk is larger, too.
func (f *File) Extend(size int64, noted func() error) error {
	is, err := f.Stat()
	if err == nil && is.Size() < size { // it may have been made longer before
		err = f.Truncate(size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = noted()
	}
	if err == nil {
		f.size.Store(max(f.Size(), size))
	}
	return err
}

// Extent asks the filesystem; a device is all data.
func (f *File) Extent(off int64) (isData bool, end int64) {
	data, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return false, f.Size()
	}
	if err == nil && data > off {
		return false, data
	}
	hole, err := unix.Seek(int(f.Fd()), off, unix.SEEK_HOLE)
	if err != nil || hole <= off {
		return true, f.Size()
	}
	return true, hole
}

// Zero makes a hole, where the file can have one.
func (f *File) Zero(off, n int64) error { return blank.Range(f.File, off, n) }
