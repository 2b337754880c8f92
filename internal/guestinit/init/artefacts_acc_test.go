//go:build acc

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cavaliergopher/cpio"
)

// What all guests boot from.
type artefacts struct{ kernel, initrd, probe string }

const (
	kernelVariable  = "VIRTCLAIM_TEST_KERNEL"  // a kernel
	modulesVariable = "VIRTCLAIM_TEST_MODULES" // the folder of its modules
)

var neededModules = []string{
	"qemu_fw_cfg", "virtio_pci", "virtio_blk", "virtio_net", "virtio_scsi", "sd_mod", "virtio_rng", "crc32c_generic", "ext4", "button", "evdev",
}

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

func makeArtefacts(t *testing.T) *artefacts {
	t.Helper()
	a, err := madeArtefacts()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func buildArtefacts(folder string) (*artefacts, error) {
	a := &artefacts{kernel: os.Getenv(kernelVariable), initrd: filepath.Join(folder, "initrd"), probe: filepath.Join(folder, "probe")}
	modules := os.Getenv(modulesVariable)
	if a.kernel == "" || modules == "" {
		return nil, fmt.Errorf("set %s to a kernel, and %s to the folder of its modules", kernelVariable, modulesVariable)
	}
	program := filepath.Join(folder, "init")
	for output, source := range map[string]string{program: ".", a.probe: "./testdata/probe"} {
		build := exec.CommandContext(context.Background(), "go", "build", "-tags", "guestinit", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid=", "-o", output, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", source, err, text)
		}
	}
	return a, writeInitrd(a.initrd, program, modules)
}

func writeInitrd(to, program, modules string) error {
	files, order, err := resolveModules(modules, neededModules)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive) // a small machine has no room for it otherwise
	w := cpio.NewWriter(compressed)
	add := func(name string, mode cpio.FileMode, content []byte) {
		if err == nil {
			err = w.WriteHeader(&cpio.Header{Name: name, Mode: mode, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	text, readErr := os.ReadFile(program)
	if readErr != nil {
		return readErr
	}
	add("dev", cpio.TypeDir|0o755, nil)
	add("modules", cpio.TypeDir|0o755, nil)
	add("init", cpio.TypeReg|0o755, text)
	add("modules.list", cpio.TypeReg|0o644, []byte(strings.Join(order, "\n")+"\n"))
	for _, name := range order {
		add("modules/"+name, cpio.TypeReg|0o644, files[name])
	}
	if err = errors.Join(err, w.Close(), compressed.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, archive.Bytes(), 0o600)
}

// ResolveModules returns modules and what they depend on, in the order in which they are to be loaded.
func resolveModules(folder string, names []string) (files map[string][]byte, order []string, err error) {
	places := map[string]string{}
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if name, found := strings.CutSuffix(filepath.Base(path), ".ko"); found {
			places[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	files = map[string][]byte{}
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		if files[name+".ko"] != nil {
			return nil
		}
		content, err := os.ReadFile(places[name])
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		dependencies, err := dependenciesOf(content)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, dependency := range dependencies {
			if err := add(dependency); err != nil {
				return err
			}
		}
		files[name+".ko"], order = content, append(order, name+".ko")
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = add(name)
		}
	}
	return files, order, err
}

func dependenciesOf(module []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, nil
	}
	text, err := section.Data()
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if list, found := strings.CutPrefix(entry, "depends="); found && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}

// MakeRoot makes a disk with a file system of the probe and the guest's files.
func (g guest) makeRoot(t *testing.T, a *artefacts, folder, image string) {
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

func format(t *testing.T, tree, image string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", tree, image, "64M").CombinedOutput()
	if err != nil {
		t.Fatalf("mke2fs: %v: %s", err, output)
	}
}

func writeTree(t *testing.T, tree string, files map[string]string) {
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
