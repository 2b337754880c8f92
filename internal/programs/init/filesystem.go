//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeSize is how much of a disk tells its file system.
const probeSize = 2048

var errNoFileSystem = errors.New("the disk has no file system of ext4, xfs or vfat: if it is blank, set format = \"ext4\"")

// probeFileSystem tells a file system by the beginning of its disk.
func probeFileSystem(head []byte) (string, error) {
	has := func(offset int, magic string) bool {
		return len(head) >= offset+len(magic) && bytes.Equal(head[offset:offset+len(magic)], []byte(magic))
	}
	switch {
	case has(0, formattingMark):
		return "", errNoFileSystem // even if it looks like one
	case has(0, "XFSB"):
		return "xfs", nil
	case has(1080, "\x53\xef"): // also ext2 and ext3, which ext4 mounts
		return "ext4", nil
	case has(510, "\x55\xaa") && (has(54, "FAT1") || has(82, "FAT32")):
		return "vfat", nil
	}
	return "", errNoFileSystem
}

func fileSystemOf(device string) (string, error) {
	file, err := os.Open(device)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	head := make([]byte, probeSize)
	read, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	return probeFileSystem(head[:read])
}

// growToDisk enlarges an ext4 to its disk. It is mounted on folder, which the program sees as path.
func growToDisk(device, folder, path string) error {
	size, err := sizeOf(device)
	if err != nil {
		return err
	}
	var before, after unix.Statfs_t
	if err := unix.Statfs(folder, &before); err != nil {
		return fmt.Errorf("measure the file system: %w", err)
	}
	if err := resize(folder, uint64(size)/uint64(before.Bsize)); err != nil {
		return fmt.Errorf("enlarge the file system to its disk: %w", err)
	}
	if err := unix.Statfs(folder, &after); err != nil {
		return fmt.Errorf("measure the file system: %w", err)
	}
	if after.Blocks > before.Blocks {
		say("the file system on %s has grown from %d to %d MiB", path, mebibytes(&before), mebibytes(&after))
	}
	return nil
}

func mebibytes(s *unix.Statfs_t) uint64 { return s.Blocks * uint64(s.Bsize) >> 20 }

func sizeOf(device string) (int64, error) {
	file, err := os.Open(device)
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return file.Seek(0, io.SeekEnd)
}

func resize(folder string, blocks uint64) error {
	const ext4Resize = 0x40086610 // EXT4_IOC_RESIZE_FS
	file, err := os.Open(folder)
	if err != nil {
		return err
	}
	//nolint:errcheck // it was only read
	defer file.Close()
	//nolint:gosec // x/sys has no call for it
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), ext4Resize, uintptr(unsafe.Pointer(&blocks))); errno != 0 {
		return errno
	}
	return nil
}
