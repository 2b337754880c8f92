package image_test

import (
	"encoding/binary"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func TestDescribe(t *testing.T) {
	const mebibyte = 1 << 20
	at := func(offset int, magic string) func(first, last []byte) {
		return func(first, _ []byte) { copy(first[offset:], magic) }
	}
	atEnd := func(before int, magic string) func(first, last []byte) {
		return func(_, last []byte) { copy(last[len(last)-before:], magic) }
	}
	both := func(parts ...func(first, last []byte)) func(first, last []byte) {
		return func(first, last []byte) {
			for _, part := range parts {
				part(first, last)
			}
		}
	}
	mbr := both(at(446, "\x80\x00\x02\x00\x83"), at(510, "\x55\xaa"))
	for name, tt := range map[string]struct {
		write func(first, last []byte)
		want  string
	}{
		"zeros":                   {func(_, _ []byte) {}, ""},
		"incomplete":              {at(0, "virtclaim: this volume is being filled, and is not complete. Before, it had 5 bytes.\n"), "an image that is not complete"},
		"qcow2":                   {func(first, _ []byte) { copy(first, qcow2(nil)) }, "a qcow2 image"},
		"vmdk":                    {at(0, "KDMV"), "a VMDK image"},
		"vmdk descriptor":         {at(0, "# a comment\nversion=1\n"), "a VMDK image"},
		"vhdx":                    {at(0, "vhdxfile"), "a VHDX image"},
		"vhd":                     {at(0, "conectix"), "a VHD image"},
		"gpt":                     {both(mbr, at(512, "EFI PART")), "a GPT partition table"},
		"gpt of 4 KiB sectors":    {both(mbr, at(4096, "EFI PART")), "a GPT partition table"},
		"end of a gpt":            {atEnd(512, "EFI PART"), "the second half of a GPT partition table, at its end"},
		"end of a gpt, 4 KiB":     {atEnd(4096, "EFI PART"), "the second half of a GPT partition table, at its end"},
		"mbr":                     {mbr, "an MBR partition table"},
		"boot sector":             {both(at(0, "\xeb\x3c\x90"), at(510, "\x55\xaa")), "data that is not recognized"},
		"code in the mbr":         {both(at(446, "\x13\x00\x02\x00\x83"), at(510, "\x55\xaa")), "data that is not recognized"},
		"ext4":                    {at(1024+56, "\x53\xef"), "an ext2, ext3 or ext4 filesystem"},
		"xfs":                     {at(0, "XFSB"), "an XFS filesystem"},
		"btrfs":                   {at(64<<10+64, "_BHRfS_M"), "a Btrfs filesystem"},
		"ntfs":                    {both(mbr, at(3, "NTFS    ")), "an NTFS filesystem"},
		"exfat":                   {both(mbr, at(3, "EXFAT   ")), "an exFAT filesystem"},
		"fat32":                   {both(mbr, at(82, "FAT32   ")), "a FAT filesystem"},
		"fat16":                   {both(mbr, at(54, "FAT16   ")), "a FAT filesystem"},
		"lvm":                     {at(512, "LABELONE\x01\x00\x00\x00\x00\x00\x00\x00abcdefghLVM2 001"), "an LVM2 physical volume"},
		"luks":                    {at(0, "LUKS\xba\xbe\x00\x02"), "a LUKS volume"},
		"hybrid iso":              {both(mbr, at(16*2048+1, "CD001")), "an ISO 9660 filesystem"},
		"swap":                    {at(4096-10, "SWAPSPACE2"), "swap space"},
		"zfs":                     {func(first, _ []byte) { binary.LittleEndian.PutUint64(first[128<<10+4096:], 0x00bab10c) }, "a ZFS label"},
		"zfs of other machines":   {func(first, _ []byte) { binary.BigEndian.PutUint64(first[384<<10:], 0x00bab10c) }, "a ZFS label"},
		"zfs at the end":          {func(_, last []byte) { binary.LittleEndian.PutUint64(last[mebibyte-128<<10:], 0x00bab10c) }, "a ZFS label"},
		"one byte":                {at(777, "x"), "data that is not recognized"},
		"one byte at the end":     {atEnd(1, "x"), "data that is not recognized"},
		"half a label of a lvm":   {at(512, "LABELONE"), "data that is not recognized"},
		"text with a magic in it": {at(1, "XFSB"), "data that is not recognized"},
	} {
		t.Run(name, func(t *testing.T) {
			first, last := make([]byte, mebibyte), make([]byte, mebibyte)
			tt.write(first, last)
			if got := image.Describe(first, last); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	iso, err := image.ISO("cidata", image.ISOFile{Name: "user-data", Content: []byte("x")})
	if got := image.Describe(iso, nil); err != nil || got != "an ISO 9660 filesystem" {
		t.Errorf("an image of virtclaim's: %q, %v", got, err)
	}
	for n := range 600 { // a short disk
		if got := image.Describe(make([]byte, n), make([]byte, n)); got != "" {
			t.Errorf("%d zeros: %q", n, got)
		}
		short := append(make([]byte, n), 1)
		if got := image.Describe(short, short); got != "data that is not recognized" {
			t.Errorf("%d zeros and a one: %q", n, got)
		}
	}
}
