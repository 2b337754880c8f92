package iscsi

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/blank"
)

// File is a disk in a file, which may be sparse, or on a block device.
type File struct {
	*os.File
	size int64
}

// OpenFile opens a file or a block device, which has its length from then on.
func OpenFile(path string, readOnly bool) (*File, error) {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	file, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file, size}, nil
}

// Size is the length in bytes.
func (f *File) Size() int64 { return f.size }

// Extent asks the filesystem; a device is all data.
func (f *File) Extent(off int64) (isData bool, end int64) {
	data, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return false, f.size
	}
	if err == nil && data > off {
		return false, data
	}
	hole, err := unix.Seek(int(f.Fd()), off, unix.SEEK_HOLE)
	if err != nil || hole <= off {
		return true, f.size
	}
	return true, hole
}

// Zero makes a hole, where the file can have one.
func (f *File) Zero(off, n int64) error { return blank.Range(f.File, off, n) }
