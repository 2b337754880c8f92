//go:build acc

package rootfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// capability is cap_net_raw+ep (capabilities(7), struct vfs_cap_data).
const capability = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// packages downloads Debian packages with all that they depend on, but for those that it has downloaded before, and returns the new ones.
func (s *stack) packages(names ...string) (debs []string) {
	s.Helper()
	all, err := artefact.Dependencies(s.Context(), names, func(string) bool { return true })
	s.try(err)
	debs, err = artefact.Download(s.Context(), s.folder("packages"), all)
	s.try(err)
	return debs
}

// install unpacks packages as dpkg does, through the symbolic links of a merged /usr.
func (s *stack) install(root string, debs []string) {
	s.Helper()
	for _, deb := range debs {
		s.run("bash", "-c", `set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xp --numeric-owner --keep-directory-symlink -C "$2"`, "-", deb, root)
	}
}

// distribution is a layer with a small Debian whose /usr is merged.
func (s *stack) distribution() {
	s.Helper()
	debs := s.packages("base-files", "base-passwd", "bash", "coreutils", "findutils", "grep", "iputils-ping", "perl-base", "sed", "tar")
	s.layer(true, func(root string) {
		for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
			s.try(os.MkdirAll(filepath.Join(root, "usr", name), 0o755))
			s.try(os.Symlink("usr/"+name, filepath.Join(root, name)))
		}
		s.install(root, debs)
		s.run("chroot", root, "/bin/bash", "-c", "echo nameserver 192.0.2.1 > /etc/resolv.conf && chmod 4755 /usr/bin/perl && mknod /dev/null c 1 3")
	})
}

func (s *stack) try(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// What is mounted of real images are the files of their layers.
func TestAccFileSystem_RealImages(t *testing.T) {
	t.Run("a distribution, and a language over it", func(t *testing.T) {
		s := newStack(t)
		s.distribution()
		python := s.packages("python3-minimal", "libpython3-stdlib")
		s.layer(true, func(root string) { s.install(root, python) })
		s.layer(true, func(root string) {
			s.run("chroot", root, "/bin/bash", "-c", "cd /usr/bin && exec ./python3.* -m compileall -q /usr/lib")
		})
	})
	t.Run("many files", func(t *testing.T) {
		s := newStack(t)
		icons := slices.DeleteFunc(s.packages("papirus-icon-theme"), func(deb string) bool { return !strings.Contains(deb, "papirus") })
		s.layer(true, func(root string) { s.install(root, icons) })
		if n := count(t, s.lower[0]); n < 50_000 {
			t.Errorf("the image has %d files, and should have 50000", n)
		}
		s.layer(true, func(root string) {
			s.run("bash", "-c", `rm -r "$1"/usr/share/icons/Papirus/{16x16,24x24}/apps && touch "$1"/usr/share/icons/Papirus/{32x32,48x48}/apps/*`, "-", root)
		})
	})
	t.Run("many layers", func(t *testing.T) {
		s := newStack(t)
		debs := s.packages("curl", "git", "python3")
		if len(debs) < 40 {
			t.Fatalf("there are %d packages, and 40 are needed", len(debs))
		}
		for n, deb := range debs {
			s.layer(n == len(debs)-1 || n == 20, func(root string) { s.install(root, []string{deb}) })
		}
	})
	t.Run("one program", func(t *testing.T) {
		s := newStack(t)
		debs := s.packages("busybox-static")
		folder := s.folder("unpacked")
		for _, deb := range debs {
			s.run("dpkg", "-x", deb, folder)
		}
		s.layer(true, func(root string) {
			s.run("cp", s.first("unpacked/bin/busybox", "unpacked/usr/bin/busybox"), filepath.Join(root, "busybox"))
		})
	})
	t.Run("capabilities, and hard links over layers", func(t *testing.T) {
		s := newStack(t)
		s.distribution()
		s.layer(true, func(root string) {
			s.try(unix.Lsetxattr(filepath.Join(root, "usr/bin/ping"), "security.capability", []byte(capability), 0))
			s.try(os.Link(filepath.Join(root, "usr/bin/ping"), filepath.Join(root, "usr/bin/another-ping")))
			s.try(os.Link(filepath.Join(root, "usr/bin/sed"), filepath.Join(root, "usr/sbin/sed")))
		})
		s.layer(true, func(root string) {
			s.try(os.Link(filepath.Join(root, "usr/bin/another-ping"), filepath.Join(root, "usr/bin/third-ping")))
			s.try(os.Remove(filepath.Join(root, "usr/bin/ping")))
			s.try(os.Chmod(filepath.Join(root, "usr/sbin/sed"), 0o700))
		})
	})
}

// first is the first of the files that there is.
func (s *stack) first(names ...string) string {
	s.Helper()
	for _, name := range names {
		if _, err := os.Lstat(s.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return s.path(name)
		}
	}
	s.Fatalf("there is none of %s", fmt.Sprint(names))
	return ""
}

func count(t *testing.T, folder string) (n int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(string, fs.DirEntry, error) error {
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
