// Package volume fills a claim from inside the cluster: a pod that has mounted the claim writes an image into it, which comes in a PUT
// request or from a container image. It knows neither libvirt nor Terraform.
package volume

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/blank"
)

// diskImage is the file of a claim with a filesystem, by KubeVirt's convention
// (https://kubevirt.io/user-guide/storage/disks_and_volumes/#persistentvolumeclaim).
const diskImage = "disk.img"

// The errors of a volume that can't be filled.
var (
	// ErrFilled is the error of a volume that has content.
	ErrFilled = errors.New("the volume has content already, and none is overwritten. Use another claim, or -overwrite if what is in this " +
		"one may be lost")
	// ErrBusy is the error of a volume that is open elsewhere.
	ErrBusy = errors.New("the volume is in use by another pod or program. Try again when that is done")
	// ErrTooLarge is the error of an image that is larger than its volume.
	ErrTooLarge = errors.New("the image is larger than the volume. Use a larger claim")
)

const (
	sector   = 512
	mebiByte = 1 << 20
	// headSize is how many bytes of a volume are written last.
	headSize = 64 << 10
)

// marker is in the first sector of a volume that is not complete. Nothing boots from it, and it is neither a filesystem nor a partition
// table. It has the length of the volume before.
const marker = image.IncompleteMarker + ", and is not complete. Before, it had %d bytes.\n"

// volume is an open claim: a block device, or disk.img in a folder. It is locked against other writers on this node.
type volume struct {
	*os.File
	isDevice bool
	// size is the length in bytes of a device, or of the file before it is filled.
	size int64
	// room is the maximal size of an image in bytes.
	room int64
	// blank is whether all that was not written is zeros.
	blank bool
}

// openVolume opens the claim that is mounted at a path. The file of a filesystem is created if it is missing.
func openVolume(path string) (*volume, error) {
	seen, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w. The claim should be mounted there (volumeMounts or volumeDevices of the container)", err)
	}
	switch {
	case seen.IsDir():
		return openFile(filepath.Join(path, diskImage))
	case seen.Mode()&fs.ModeDevice != 0 && seen.Mode()&fs.ModeCharDevice == 0:
		return openDevice(path)
	}
	return nil, fmt.Errorf("%s is neither a folder nor a block device, and so no claim. Name the mountPath or the devicePath of one", path)
}

// openDevice claims the device exclusively: the kernel refuses a second claim, also that of a filesystem which is mounted.
func openDevice(path string) (*volume, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("%w (%s)", ErrBusy, path)
	}
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &volume{File: file, isDevice: true, size: size, room: size}, nil
}

// openFile locks the file as a whole: QEMU's own locks are parts of it, so that it can't be open in QEMU.
func openFile(path string) (*volume, error) {
	//nolint:gosec // for other users of the volume's group
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o660)
	if err != nil {
		return nil, err
	}
	v := &volume{File: file}
	if err := v.lock(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return v, nil
}

func (v *volume) lock() error {
	is, err := v.Stat()
	if err != nil {
		return err
	}
	if !is.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file. Delete it, and one is made", v.Name())
	}
	err = unix.FcntlFlock(v.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w (%s)", ErrBusy, v.Name())
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", v.Name(), err)
	}
	var has unix.Statfs_t
	if err := unix.Fstatfs(int(v.Fd()), &has); err != nil {
		return fmt.Errorf("ask for the free space around %s: %w", v.Name(), err)
	}
	var own unix.Stat_t
	if err := unix.Fstat(int(v.Fd()), &own); err != nil {
		return err
	}
	v.size, v.room = is.Size(), min(maxRoom, int64(has.Bavail)*cmp.Or(has.Frsize, has.Bsize)+own.Blocks*sector)
	return nil
}

// checkUnused is ErrFilled if the volume has content. What was written before the head of an image was, is none.
func (v *volume) checkUnused() error {
	begin, end := make([]byte, min(v.size, mebiByte)), make([]byte, min(v.size, mebiByte))
	if _, err := v.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if before, ok := marked(begin); ok {
		if !v.isDevice {
			v.size = before
		}
		return nil
	}
	if _, err := v.ReadAt(end, v.size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if is := image.Describe(begin, end); is != "" {
		return fmt.Errorf("%w (%s has %s)", ErrFilled, v.Name(), is)
	}
	return nil
}

// begin marks the volume as incomplete, before it drops what is in a file: that may be a blank disk whose length counts.
func (v *volume) begin() error {
	if _, err := v.WriteAt(padded(fmt.Appendf(nil, marker, v.size)), 0); err != nil {
		return err
	}
	if err := v.Sync(); err != nil || v.isDevice {
		return err
	}
	v.blank = true
	return v.Truncate(sector)
}

// flush lets the kernel begin to write a range to the disk.
func (v *volume) flush(at, n int64) {
	_ = unix.SyncFileRange(int(v.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE) // it only saves time
}

// finish writes the head of an image of that size, whose rest is written already.
func (v *volume) finish(head []byte, size int64) error {
	if err := v.endAt(size); err != nil {
		return err
	}
	head = padded(head)
	if _, err := v.WriteAt(head[sector:], sector); err != nil {
		return err
	}
	if err := v.Sync(); err != nil {
		return err
	}
	// A sector is written as a whole or not at all.
	if _, err := v.WriteAt(head[:sector], 0); err != nil {
		return err
	}
	return v.Sync()
}

// endAt gives the file its length, or blanks what follows the image on a device: as far as that is cheap, and the end, where the second
// partition table of a former disk would be.
func (v *volume) endAt(size int64) error {
	end := (size + sector - 1) / sector * sector
	if !v.isDevice {
		return v.Truncate(max(end, v.size))
	}
	if end >= v.size {
		return nil
	}
	if unix.Fallocate(int(v.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, end, v.size-end) == nil {
		return nil
	}
	last := max(end, v.size-mebiByte)
	return v.zero(last, v.size-last)
}

// zero has a range read as zeros.
func (v *volume) zero(at, n int64) error {
	if v.blank || n <= 0 {
		return nil
	}
	return blank.Range(v.File, at, n)
}

// maxRoom is the maximal size of an image; less in tests.
var maxRoom int64 = image.MaxCapacity

var zeros = make([]byte, mebiByte)

// padded is p up to the end of its last sector, and at least one.
func padded(p []byte) []byte {
	whole := make([]byte, max(sector, (len(p)+sector-1)/sector*sector))
	copy(whole, p)
	return whole
}

// marked returns the length that a volume with the marker had before.
func marked(begin []byte) (before int64, ok bool) {
	n, err := fmt.Sscanf(string(begin[:min(sector, len(begin))]), marker, &before)
	return before, n == 1 && err == nil && before >= 0
}
