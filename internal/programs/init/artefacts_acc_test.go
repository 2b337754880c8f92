//go:build acc

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/initramfs"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// What all guests boot from.
type artefacts struct{ kernel, initrd, probe string }

var (
	artefactFolder string
	madeArtefacts  = sync.OnceValues(func() (*artefacts, error) { return buildArtefacts(artefactFolder) })
)

func TestMain(m *testing.M) {
	code := func() int {
		folder, err := os.MkdirTemp("", "guestinit")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder) //nolint:errcheck // it is a temporary one
		artefactFolder = folder
		return m.Run()
	}()
	os.Exit(code)
}

func makeArtefacts(t testing.TB) *artefacts {
	t.Helper()
	a, err := madeArtefacts()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func buildArtefacts(folder string) (*artefacts, error) {
	ctx := context.Background()
	a := &artefacts{initrd: filepath.Join(folder, "initrd"), probe: filepath.Join(folder, "probe")}
	program := filepath.Join(folder, "init")
	for output, source := range map[string]string{program: ".", a.probe: "./testdata/probe"} {
		build := exec.CommandContext(ctx, "go", "build", "-tags", "guestinit", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", output, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", source, err, text)
		}
	}
	init, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	kernel, err := readKernel(ctx)
	if err != nil {
		return nil, err
	}
	var initrd bytes.Buffer
	if err := kernel.Write(&initrd, init); err != nil {
		return nil, err
	}
	a.kernel = filepath.Join(folder, "vmlinuz")
	return a, errors.Join(os.WriteFile(a.kernel, kernel.Image, 0o600), os.WriteFile(a.initrd, initrd.Bytes(), 0o600))
}

// readKernel reads the distribution's kernel from an archive of its files.
func readKernel(ctx context.Context) (*initramfs.Kernel, error) {
	files, err := lab.Kernel(ctx, func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.AddFS(os.DirFS(files.Root)), w.Close()); err != nil {
		return nil, err
	}
	return initramfs.Read(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
}

// makeRoot makes a disk with a file system of the probe and the guest's files.
func (g guest) makeRoot(t testing.TB, a *artefacts, folder, image string) {
	t.Helper()
	tree := filepath.Join(folder, "tree")
	writeTree(t, tree, g.files)
	content, err := os.ReadFile(a.probe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "probe"), content, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range g.links {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(target, "/other") {
			if err := os.Mkdir(filepath.Join(tree, target), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	format(t, tree, image)
	if g.grownTo > 0 {
		if err := os.Truncate(image, g.grownTo); err != nil {
			t.Fatal(err)
		}
	}
}

func makeFileSystem(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	tree, image := filepath.Join(folder, "tree"), filepath.Join(folder, "image")
	writeTree(t, tree, files)
	format(t, tree, image)
	return image
}

func format(t testing.TB, tree, image string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", tree, image, "64M").CombinedOutput()
	if err != nil {
		t.Fatalf("mke2fs: %v: %s", err, output)
	}
}

func writeTree(t testing.TB, tree string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
