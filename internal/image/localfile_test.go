package image_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocalFile(t *testing.T) {
	want := disk(300_000)
	for name, content := range map[string][]byte{"raw": want, "gzip": gzipped(t, want), "zstd": zstandard(t, want), "xz": xzed(want, dictionary1MiB)} {
		t.Run(name, func(t *testing.T) {
			f := image.LocalFile{Path: file(t, content)}
			digest, err := f.Hash(t.Context())
			if err != nil || digest != sha(content) {
				t.Fatalf("it hashes to %q, %v", digest, err)
			}
			f.Digest = digest
			if got, err := readAll(f.Open(t.Context())); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// A file is read once for many disks in a plan, and again after a change.
func TestLocalFile_IsHashedOnce(t *testing.T) {
	first, second := disk(1<<20), disk(1<<20+1)
	f := image.LocalFile{Path: file(t, first)}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if digest, err := f.Hash(t.Context()); err != nil || digest != sha(first) {
				t.Errorf("it hashes to %q, %v", digest, err)
			}
		})
	}
	all.Wait()
	// Another content with the same size and time: only a file that is not read again has the old digest.
	info, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(f.Path, make([]byte, len(first)), 0o600), os.Chtimes(f.Path, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if digest, err := f.Hash(t.Context()); err != nil || digest != sha(first) {
		t.Errorf("it was read again: %q, %v", digest, err)
	}
	if err := os.WriteFile(f.Path, second, 0o600); err != nil {
		t.Fatal(err)
	}
	if digest, err := f.Hash(t.Context()); err != nil || digest != sha(second) {
		t.Errorf("it was not read again: %q, %v", digest, err)
	}
}

func TestLocalFile_RefusesSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, socket, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for path, want := range map[string]string{
		dir: "a folder", "/dev/zero": "a device", pipe: "a pipe", link: "a pipe", socket: "a socket", filepath.Join(dir, "none"): "there is no file",
	} {
		f := image.LocalFile{Path: path}
		_, hashing := f.Hash(t.Context())
		_, opening := readAll(f.Open(t.Context()))
		_, _, heading := f.Head(t.Context())
		_, _, judging := f.Judge(t.Context())
		for _, err := range []error{hashing, opening, heading, judging} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s gives %v", path, err)
			}
		}
	}
}

func TestLocalFile_CancelEndsHashing(t *testing.T) {
	f := image.LocalFile{Path: file(t, disk(1000))}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Hash(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := readAll(f.Open(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
