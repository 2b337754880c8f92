//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

const (
	sectorSize = 512
	mebibyte   = 1 << 20
	// formattingMark begins a disk that is being formatted, in a sector that ext4 does not use. Such a disk was never mounted.
	formattingMark = "virtclaim: this disk is being formatted\n"
)

// A blankDisk is what formatting needs of a disk.
type blankDisk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// formatDisk makes an ext4 on a blank disk, whose root directory has owner and mode of the folder in the image, as with container engines.
func formatDisk(device, path string) error {
	folder, err := openFolder(sysroot, path)
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // a handle without content
	var owner unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &owner); err != nil {
		return err
	}
	disk, err := os.OpenFile(device, os.O_RDWR|unix.O_EXCL, 0) // exclusive: it is not mounted
	if err != nil {
		return err
	}
	defer disk.Close() //nolint:errcheck // all was synced
	size, err := disk.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	fs := rootfs.Blank{Blocks: uint32(size / rootfs.BlockSize), UID: owner.Uid, GID: owner.Gid, Mode: owner.Mode}
	if _, err := unix.Getrandom(fs.ID[:], 0); err != nil {
		return err
	}
	fs.ID[6], fs.ID[8] = fs.ID[6]&0xf|0x40, fs.ID[8]&0x3f|0x80 // as UUIDs of random numbers are
	if err := formatBlank(disk, size, fs); err != nil {
		return fmt.Errorf("format it: %w", err)
	}
	say("the disk for %s was blank, and has an ext4 now", path)
	return nil
}

// formatBlank writes a file system on a blank disk, or on one where that was interrupted, which has the mark: then the one that was begun.
// Whatever is written last, no disk looks like an ext4 before it is complete, and none with something else on it is written to.
func formatBlank(disk blankDisk, size int64, fs rootfs.Blank) error {
	if size < rootfs.MinBlank || size > rootfs.MaxBlank {
		return fmt.Errorf("it has %d bytes, and must have between 16 MiB and 16 TiB", size)
	}
	first := make([]byte, sectorSize)
	if _, err := disk.ReadAt(first, 0); err != nil {
		return err
	}
	var begun map[int64][]byte
	if began, found := bytes.CutPrefix(first, []byte(formattingMark)); found {
		if _, err := binary.Decode(began, binary.BigEndian, &fs); err != nil {
			return err
		}
		begun = marked(fs)
	}
	if err := errors.Join(checkBlank(disk, 0, fs.Size(), begun), checkBlank(disk, size-mebibyte, size, begun)); err != nil {
		return err
	}
	content := marked(fs)
	head := content[0]
	delete(content, 0)
	for _, step := range []map[int64][]byte{{0: head[:sectorSize]}, content, {0: head}, {0: make([]byte, sectorSize)}} {
		for at, part := range step {
			if _, err := disk.WriteAt(part, at); err != nil {
				return err
			}
		}
		if err := disk.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// marked is the content of the file system, with the mark that it is being written.
func marked(fs rootfs.Blank) map[int64][]byte {
	content := fs.Content()
	mark, _ := binary.Append([]byte(formattingMark), binary.BigEndian, fs) // its fields have fixed sizes
	copy(content[0], mark)
	return content
}

// checkBlank refuses a disk that has, in these bytes, sectors which are neither zeros nor as they were begun to be written.
func checkBlank(disk io.ReaderAt, from, to int64, begun map[int64][]byte) error {
	part, zeros := make([]byte, mebibyte), make([]byte, sectorSize)
	for ; from < to; from += mebibyte {
		part = part[:min(mebibyte, to-from)]
		if _, err := disk.ReadAt(part, from); err != nil {
			return err
		}
		for n := int64(0); n < int64(len(part)); n += sectorSize {
			at := from + n
			sector, block := part[n:n+sectorSize], at/rootfs.BlockSize*rootfs.BlockSize
			if bytes.Equal(sector, zeros) || begun[block] != nil && bytes.Equal(sector, begun[block][at-block:][:sectorSize]) {
				continue
			}
			return fmt.Errorf("it is not blank: there is something in the 512 bytes from %d on. It was not written to", at)
		}
	}
	return nil
}
