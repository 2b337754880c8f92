//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

const formattedSize = rootfs.MinBlank

var errCut = errors.New("the power is cut")

// A cutDisk loses its power after so many writes and syncs. Of what was not synced, only every other sector is on the disk.
type cutDisk struct {
	*os.File
	left int
	late []func()
}

func (c *cutDisk) WriteAt(b []byte, at int64) (int, error) {
	if c.left--; c.left < 0 {
		return 0, errCut
	}
	for n := 0; n < len(b); n += sectorSize {
		write := func() { _, _ = c.File.WriteAt(b[n:n+sectorSize], at+int64(n)) }
		if n/sectorSize%2 == c.left%2 {
			write()
		} else {
			c.late = append(c.late, write)
		}
	}
	return len(b), nil
}

func (c *cutDisk) Sync() error {
	if c.left--; c.left < 0 {
		return errCut
	}
	for _, write := range c.late {
		write()
	}
	c.late = nil
	return nil
}

func diskWith(t *testing.T, parts map[int64]string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if err := file.Truncate(formattedSize); err != nil {
		t.Fatal(err)
	}
	for at, part := range parts {
		if _, err := file.WriteAt([]byte(part), at); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func blankFor(first byte) rootfs.Blank {
	return rootfs.Blank{ID: [16]byte{first}, Blocks: formattedSize / rootfs.BlockSize, UID: 70, GID: 71, Mode: 0o750}
}

func content(t *testing.T, file *os.File) []byte {
	t.Helper()
	all, err := io.ReadAll(io.NewSectionReader(file, 0, formattedSize))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Wherever formatting is cut, the disk is not taken for a file system unless it is complete, and is formatted at the next start.
func TestFormatBlank_Cut(t *testing.T) {
	whole := diskWith(t, nil)
	if err := formatBlank(whole, formattedSize, blankFor(1)); err != nil {
		t.Fatal(err)
	}
	want := content(t, whole)
	cuts := 0
	for ; ; cuts++ {
		file := diskWith(t, nil)
		err := formatBlank(&cutDisk{File: file, left: cuts}, formattedSize, blankFor(1))
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatalf("cut %d: %v", cuts, err)
		}
		kind, err := fileSystemOf(file.Name())
		if isWhole := bytes.Equal(content(t, file), want); (err == nil) != isWhole {
			t.Errorf("cut %d: it is %q, %v, and complete: %v", cuts, kind, err, isWhole)
		}
		if err == nil {
			continue
		}
		began := bytes.HasPrefix(content(t, file), []byte(formattingMark))
		// The next start has another image, and another random number.
		if err := formatBlank(file, formattedSize, blankFor(2)); err != nil {
			t.Errorf("cut %d: the next start: %v", cuts, err)
		}
		if kind, err := fileSystemOf(file.Name()); kind != "ext4" || err != nil || began != bytes.Equal(content(t, file), want) {
			t.Errorf("cut %d: after the next start it is %q, %v", cuts, kind, err)
		}
	}
	if cuts < 10 {
		t.Errorf("it was cut at %d moments only", cuts)
	}
}

// A disk with anything on it is not written to.
func TestFormatBlank_NotBlank(t *testing.T) {
	mark := string(marked(blankFor(1))[0][:sectorSize])
	for name, parts := range map[string]map[int64]string{
		"a stray byte at the end":               {formattedSize - 1: "x"},
		"a stray byte in the last MiB":          {formattedSize - mebibyte: "x"},
		"a partition table":                     {510: "\x55\xaa"},
		"GPT":                                   {512: "EFI PART"},
		"LUKS":                                  {0: "LUKS\xba\xbe"},
		"LVM":                                   {512: "LABELONE"},
		"btrfs":                                 {65600: "_BHRfS_M"},
		"swap":                                  {4086: "SWAPSPACE2"},
		"something where the journal will be":   {5 << 20: "x"},
		"the mark, and a partition table":       {0: mark[:510] + "\x55\xaa"},
		"the mark, and LVM":                     {0: mark, 512: "LABELONE"},
		"the mark, and another file system":     {0: mark, 1080: "\x53\xef"},
		"the mark, and a stray byte at its end": {0: mark, formattedSize - 1: "x"},
	} {
		file := diskWith(t, parts)
		before := content(t, file)
		if err := formatBlank(file, formattedSize, blankFor(2)); err == nil || !strings.Contains(err.Error(), "is not blank") {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(content(t, file), before) {
			t.Errorf("%s: it was written to", name)
		}
	}
}

func TestFormatBlank_Size(t *testing.T) {
	for _, size := range []int64{0, rootfs.MinBlank - 1, rootfs.MaxBlank + 1} {
		if err := formatBlank(diskWith(t, nil), size, blankFor(1)); err == nil || !strings.Contains(err.Error(), "between 16 MiB and 16 TiB") {
			t.Errorf("%d: %v", size, err)
		}
	}
}
