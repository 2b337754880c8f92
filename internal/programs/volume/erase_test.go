package volume

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

func TestErase(t *testing.T) {
	for name, was := range map[string][]byte{
		"an image":      disk(40),
		"an odd length": bytes.Repeat([]byte{1}, 777),
		"one byte":      {1},
		"nothing":       {},
		"zeros":         make([]byte, 5000),
	} {
		t.Run(name, func(t *testing.T) {
			folder := inMemory(t)
			path := filepath.Join(folder, diskImage)
			if err := os.WriteFile(path, was, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := writeRecord(folder, podwire.Filled{Digest: "sha256:old"}); err != nil {
				t.Fatal(err)
			}
			var out output
			if code := Run(t.Context(), []string{"erase", "-volume", folder}, "", &out); code != 0 || !strings.Contains(out.text(), "bytes read as zeros") {
				t.Errorf("exit code %d: %s", code, out.text())
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, make([]byte, len(was))) {
				t.Errorf("%v, %d bytes instead of %d, zeros: %v", err, len(got), len(was), isZero(got))
			}
			if _, ok := readRecord(folder); ok {
				t.Error("the record is left")
			}
		})
	}
}

// An interrupted one leaves the marker, and the next one gives the file its length again.
func TestErase_Interrupted(t *testing.T) {
	folder := inMemory(t)
	path := filepath.Join(folder, diskImage)
	was := disk(40)
	if err := os.WriteFile(path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var written atomic.Int64
	if _, err := (Claim{Path: folder}).erase(ctx, &written); err == nil || !strings.Contains(err.Error(), "marked as incomplete") {
		t.Errorf("error %v", err)
	}
	got, err := os.ReadFile(path)
	if before, incomplete := marked(got); err != nil || !incomplete || before != int64(len(was)) {
		t.Errorf("%v, %v, %d bytes before", err, incomplete, before)
	}
	if size, err := (Claim{Path: folder}).erase(t.Context(), &written); err != nil || size != int64(len(was)) || written.Load() != size {
		t.Errorf("%d bytes, %d written, %v", size, written.Load(), err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, make([]byte, len(was))) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}
