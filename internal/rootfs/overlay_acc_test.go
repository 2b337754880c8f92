//go:build acc

package rootfs_test

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// stack is what overlayfs and the file system have of the same layers.
type stack struct {
	*testing.T
	dir string
	// lower are the folders of the layers, the highest one first, and images the images, the lowest one first.
	lower, images []string
	is            *rootfs.FileSystem
}

func newStack(t *testing.T) *stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("overlayfs needs root: run the tests as root")
	}
	dir, err := os.MkdirTemp("", "fs") // a short name: all layers are in one option of mount
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stack{T: t, dir: dir, is: rootfs.New([16]byte{1: 1})}
	s.folder("empty")
	s.lower = []string{s.path("empty")}
	return s
}

func (s *stack) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stack) folder(name string) string {
	s.Helper()
	if err := os.MkdirAll(s.path(name), 0o755); err != nil {
		s.Fatal(err)
	}
	return s.path(name)
}

func (s *stack) run(name string, arguments ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.Context(), name, arguments...).CombinedOutput(); err != nil {
		s.Fatalf("%s %s: %v: %s", name, strings.Join(arguments, " "), err, out)
	}
}

// layer adds a layer by changing files as a build does, in an overlay, and compares all files if check.
func (s *stack) layer(check bool, change func(root string)) {
	s.Helper()
	n := len(s.images) + 1
	upper, work, root := s.folder(fmt.Sprint("upper-", n)), s.folder(fmt.Sprint("work-", n)), s.folder("root")
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(s.lower, ":"), upper, work)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		s.Fatalf("overlay of %d layers: %v", n, err)
	}
	change(root)
	var want []string
	if check {
		want = files(s.T, root)
	}
	if err := unix.Unmount(root, 0); err != nil {
		s.Fatal(err)
	}
	s.lower = append([]string{upper}, s.lower...)
	archive := s.path(fmt.Sprint("layer-", n, ".tar"))
	pack(s.T, upper, archive)
	s.apply(archive)
	if check {
		s.compare(want)
	}
	_ = os.Remove(archive)
}

func (s *stack) apply(archive string) {
	s.Helper()
	in, err := os.Open(archive)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	backing, name := "", s.path(fmt.Sprint("layer-", len(s.images)+1, ".qcow2"))
	if len(s.images) > 0 {
		backing = filepath.Base(s.images[len(s.images)-1])
	}
	if err := apply(s.is, in, name, backing); err != nil {
		s.Fatal(err)
	}
	s.images = append(s.images, name)
}

// compare compares the highest image, which has to be faultless, too.
func (s *stack) compare(want []string) {
	s.Helper()
	highest, raw, root := s.images[len(s.images)-1], s.path("raw"), s.folder("root")
	defer func() { _ = os.Remove(raw) }()
	s.run("qemu-img", "check", "-q", highest)
	s.run("qemu-img", "convert", "-O", "raw", highest, raw)
	s.run("e2fsck", "-fn", raw)
	s.run("mount", "-o", "loop,ro,noload", raw, root)
	got := files(s.T, root)
	s.run("umount", root)
	if slices.Equal(got, want) {
		return
	}
	for n, line := range append(missing(want, got), missing(got, want)...) {
		if n < 20 {
			s.Errorf("layer %d: only on one side: %s", len(s.images), line)
		}
	}
}

func missing(from, in []string) (all []string) {
	has := map[string]bool{}
	for _, line := range in {
		has[line] = true
	}
	return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return has[line] })
}

// files are the files below a folder with all that a process sees of them.
func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%q %o %d:%d %d.%09d", strings.TrimPrefix(path, root), stat.Mode, stat.Uid, stat.Gid, stat.Mtim.Sec, stat.Mtim.Nsec)
		switch {
		case path == root:
			line = fmt.Sprintf("/ %o", stat.Mode) // its time is that of the folder that was mounted over
		case info.Mode().IsRegular():
			line += fmt.Sprintf(" %d %s", stat.Size, digest(t, path))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" -> %q", target)
		case info.Mode()&fs.ModeDevice != 0:
			line += fmt.Sprintf(" %d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
		}
		for name, value := range attributes(t, path) {
			line += fmt.Sprintf(" %s=%x", name, value)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func digest(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// attributes yields the extended attributes of a file in the order of their names, without those of overlayfs.
func attributes(t *testing.T, path string) func(func(string, []byte) bool) {
	t.Helper()
	b := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, b)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	names := strings.FieldsFunc(string(b[:max(n, 0)]), func(r rune) bool { return r == 0 })
	slices.Sort(names)
	return func(yield func(string, []byte) bool) {
		for _, name := range names {
			if strings.HasPrefix(name, "trusted.overlay.") {
				continue
			}
			value := make([]byte, 64<<10)
			n, err := unix.Lgetxattr(path, name, value)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(name, value[:n]) {
				return
			}
		}
	}
}

// pack makes a layer of the folder that has the changes of an overlay.
func pack(t *testing.T, upper, archive string) {
	t.Helper()
	out, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(out)
	links := map[uint64]string{}
	err = filepath.WalkDir(upper, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == upper {
			return err
		}
		return packFile(t, w, links, upper, path)
	})
	if err := errors.Join(err, w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func packFile(t *testing.T, w *tar.Writer, links map[uint64]string, upper, path string) error {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(path, upper+"/")
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0 {
		return w.WriteHeader(&tar.Header{Name: filepath.Join(filepath.Dir(name), ".wh."+filepath.Base(name)), Typeflag: tar.TypeReg})
	}
	h, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	h.Name, h.Format, h.PAXRecords = name, tar.FormatPAX, map[string]string{}
	h.Uname, h.Gname = "", ""
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if info.Mode()&fs.ModeSymlink != 0 {
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	}
	for name, value := range attributes(t, path) {
		h.PAXRecords["SCHILY.xattr."+name] = string(value)
	}
	if first := links[stat.Ino]; first != "" && !info.IsDir() {
		return w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: first})
	}
	links[stat.Ino] = name
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if info.IsDir() {
		value := make([]byte, 8)
		if n, err := unix.Lgetxattr(path, "trusted.overlay.opaque", value); err == nil && n == 1 && value[0] == 'y' {
			return w.WriteHeader(&tar.Header{Name: name + "/.wh..wh..opq", Typeflag: tar.TypeReg})
		}
		return nil
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

// What is written to a file system later is as faultless.
func TestAccFileSystem_Writable(t *testing.T) {
	s := newStack(t)
	s.layer(false, func(root string) { s.try(os.WriteFile(filepath.Join(root, "file"), []byte("content"), 0o600)) })
	raw, root := s.path("raw"), s.folder("root")
	s.run("qemu-img", "convert", "-O", "raw", s.images[0], raw)
	s.run("mount", "-o", "loop", raw, root)
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `head -c 100M /dev/urandom > "$1"/more && touch "$1"/file-{1..5000} && rm "$1"/file`, "-", root).CombinedOutput()
	s.run("umount", root)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.run("e2fsck", "-fn", raw)
}
