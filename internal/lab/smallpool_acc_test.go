//go:build acc

package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccSmallPool_FillsUp(t *testing.T) {
	l := sharedLab(t)
	defaultConfig, err := l.DefaultConfigHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Host{l.Hosts["host-a"], defaultConfig} {
		t.Run(h.Name, func(t *testing.T) { testSmallPool(t, h) })
	}
}

func testSmallPool(t *testing.T, h *Host) {
	t.Helper()
	remove, err := h.AddSmallPool(t.Context(), "small", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	// Data that fits into the pool is stored, as on any disk.
	virsh(t, h, "vol-create-as", "small", "some", "64M", "--allocation", "0")
	virsh(t, h, "vol-upload", "--pool", "small", "some", writeFile(t, "some", "content"))
	got, err := h.ReadFile(t.Context(), filepath.Join(h.Pools, "small", "some"))
	if err != nil || len(got) != 64<<20 || !bytes.HasPrefix(got, []byte("content\x00")) {
		t.Errorf("the volume has %d bytes, of which the first are %.10q (%v)", len(got), got, err)
	}

	virsh(t, h, "vol-create-as", "small", "much", "4M", "--allocation", "0")
	// The end of an upload does not always return an error, so the file is checked.
	_, failed := h.Virsh(t.Context(), "vol-upload", "--pool", "small", "much", writeFile(t, "much", strings.Repeat("x", 4<<20)))
	got, err = h.ReadFile(t.Context(), filepath.Join(h.Pools, "small", "much"))
	if n := bytes.Count(got, []byte("x")); err != nil || n > 1<<20 {
		t.Errorf("the pool took %d bytes (%v, the upload: %v)", n, err, failed)
	}
	if out, err := h.Virsh(t.Context(), "vol-create-as", "small", "allocated", "2M"); err == nil || !strings.Contains(out, "No space left") {
		t.Errorf("the pool is full, but a volume fits, or fails at something else: %v", err)
	}

	if _, err := h.AddSmallPool(t.Context(), "small", 1<<20); err == nil {
		t.Error("another pool takes its place")
	}
	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "pools", "small")); !os.IsNotExist(err) {
		t.Errorf("the pool's folder is left (%v)", err)
	}
	if _, err := h.ReadFile(t.Context(), filepath.Join(h.Pools, "small", "some")); err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("the file is still there, or an error is about something else: %v", err)
	}
}

func TestAccSmallPool_FailureLeavesNothing(t *testing.T) {
	h := sharedLab(t).Hosts["host-a"]
	if _, err := h.AddSmallPool(t.Context(), "small", -1); err == nil {
		t.Error("there is a filesystem of -1 bytes")
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "pools", "small")); !os.IsNotExist(err) {
		t.Errorf("the pool's folder is left (%v)", err)
	}
}
