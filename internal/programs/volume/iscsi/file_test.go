package iscsi

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFile_ZeroMakesHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	if err := disk.Zero(1<<20, 2<<20); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := append(append(bytes.Repeat([]byte{1}, 1<<20), make([]byte, 2<<20)...), bytes.Repeat([]byte{1}, 1<<20)...); err != nil || !bytes.Equal(got, want) {
		t.Error("not these bytes are zeros:", err)
	}
	for off := int64(0); off < disk.Size(); {
		isData, end := disk.Extent(off)
		if end <= off || end > disk.Size() || !isData && (off < 1<<20 || end > 3<<20) {
			t.Fatalf("%v from %d to %d", isData, off, end)
		}
		off = end
	}
}
