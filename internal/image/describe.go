package image

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// IncompleteMarker begins a volume that virtclaim-volume has not filled completely.
const IncompleteMarker = "virtclaim: this volume is being filled"

// signatures are what disks are recognized by, with the offset. A hybrid image has several: the first one counts.
var signatures = []struct {
	offset      int
	magic, name string
}{
	{0, IncompleteMarker, "an image that is not complete"},
	{0, magicQcow2, "a qcow2 image"},
	{0, "LUKS\xba\xbe", "a LUKS volume"},
	{32769, "CD001", "an ISO 9660 filesystem"},
	{512, "EFI PART", "a GPT partition table"},
	{4096, "EFI PART", "a GPT partition table"},
	{0, "XFSB", "an XFS filesystem"},
	{0x438, "\x53\xef", "an ext2, ext3 or ext4 filesystem"},
	{0x10040, "_BHRfS_M", "a Btrfs filesystem"},
	{3, "NTFS    ", "an NTFS filesystem"},
	{3, "EXFAT   ", "an exFAT filesystem"},
	{82, "FAT32   ", "a FAT filesystem"},
	{54, "FAT16   ", "a FAT filesystem"},
	{54, "FAT12   ", "a FAT filesystem"},
	{4096 - 10, "SWAPSPACE2", "swap space"},
	{65536 - 10, "SWAPSPACE2", "swap space"}, // of pages of 64 KiB
}

// Describe names what a disk has, by its first and last MiB; it is empty if both are zeros. Only virtclaim's errors depend on it.
func Describe(first, last []byte) string {
	if isBlank(first) && isBlank(last) {
		return ""
	}
	for _, s := range signatures {
		if has(first, s.offset, s.magic) {
			return s.name
		}
	}
	// LVM2 has its label in one of the first four sectors.
	for at := 0; at < 4*512; at += 512 {
		if has(first, at, "LABELONE") && has(first, at+24, "LVM2 001") {
			return "an LVM2 physical volume"
		}
	}
	format := foreignFormat(first)
	switch {
	case format != "":
		return "a " + format + " image"
	case hasZFS(first) || hasZFS(last):
		return "a ZFS label"
	case has(end(last, 512), 0, "EFI PART") || has(end(last, 4096), 0, "EFI PART"):
		return "the second half of a GPT partition table, at its end"
	case hasMBR(first):
		return "an MBR partition table"
	}
	return "data that is not recognized"
}

// hasMBR is whether a disk begins with a partition table of which an entry is in use. A boot sector without one has code there.
func hasMBR(first []byte) bool {
	if !has(first, 510, "\x55\xaa") {
		return false
	}
	used := false
	for entry := range slices.Chunk(first[446:510], 16) {
		if entry[0]&0x7f != 0 { // whether it is active
			return false
		}
		used = used || entry[4] != 0
	}
	return used
}

// hasZFS is whether a MiB has a uberblock, which labels at both ends of a disk have.
func hasZFS(mebibyte []byte) bool {
	const step, magic = 1 << 10, 0x00bab10c
	for part := range slices.Chunk(mebibyte, step) {
		if len(part) == step && (binary.LittleEndian.Uint64(part) == magic || binary.BigEndian.Uint64(part) == magic) {
			return true
		}
	}
	return false
}

func isBlank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// end is the last n bytes of b, or all of them.
func end(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
