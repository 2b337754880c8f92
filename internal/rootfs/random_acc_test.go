//go:build acc

package rootfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The files of random sets of layers are those that overlayfs has of them.
func TestAccFileSystem_LikeOverlayFS(t *testing.T) { compareRandom(t, 0, 5) }

func TestAccFileSystem_ManyLikeOverlayFS(t *testing.T) { compareRandom(t, 5, 200) }

func compareRandom(t *testing.T, first, end uint64) {
	t.Helper()
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random{rand.New(rand.NewPCG(seed, 1)), t}
			s := newStack(t)
			layers := 2 + r.IntN(5)
			checked := r.IntN(layers)
			for n := range layers {
				s.layer(n == checked || n == layers-1, func(root string) {
					for range 30 + r.IntN(120) {
						r.change(root)
					}
				})
			}
		})
	}
}

// random makes random changes of files.
type random struct {
	*rand.Rand
	t *testing.T
}

// try fails the test unless the error is one that a random change may meet.
func (r random) try(err error) {
	r.t.Helper()
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EISDIR) &&
		!errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENXIO) &&
		!errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.ENOTSUP) {
		r.t.Fatal(err)
	}
}

// pick returns a folder, and a file of any other type, or an empty string.
func (r random) pick(root string) (folder, file string) {
	var folders, others []string
	r.try(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		} else if err == nil {
			others = append(others, path)
		}
		return err
	}))
	folder = folders[r.IntN(len(folders))]
	if len(others) > 0 {
		file = others[r.IntN(len(others))]
	}
	return folder, file
}

func (r random) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func oneOf[T any](r random, all ...T) T { return all[r.IntN(len(all))] }

func (r random) change(root string) {
	folder, file := r.pick(root)
	name := filepath.Join(folder, oneOf(r, "x", "a name", "ä", "\xff", ".hidden", strings.Repeat("n", 255))+fmt.Sprint(r.IntN(8)))
	if len(filepath.Base(name)) > 255 {
		name = filepath.Join(folder, strings.Repeat("n", 255))
	}
	isFolder := func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.IsDir()
	}
	switch n := r.IntN(100); {
	case n < 30:
		_ = os.RemoveAll(name)
		r.try(os.WriteFile(name, r.bytes(oneOf(r, 0, 1, 100, 4095, 4096, 4097, 65536, 200_000)), 0o644))
	case n < 42:
		r.try(os.Mkdir(name, 0o755))
	case n < 50 && file != "":
		r.try(os.Remove(file))
	case n < 58 && folder != root: // perhaps with another folder or file in its place
		r.try(os.RemoveAll(folder))
		switch r.IntN(3) {
		case 0:
			r.try(os.Mkdir(folder, 0o700))
			r.try(os.WriteFile(filepath.Join(folder, "again"), nil, 0o600))
		case 1:
			r.try(os.WriteFile(folder, []byte("a file now"), 0o600))
		}
	case n < 66 && file != "":
		r.try(os.Link(file, name))
	case n < 74:
		r.try(os.Symlink(strings.Repeat("t", oneOf(r, 1, 58, 59, 60, 61, 300, 900)), name))
	case n < 80 && file != "":
		r.attribute(file)
	case n < 87:
		path := oneOf(r, folder, file)
		if path != "" && path != root {
			r.try(os.Lchown(path, r.IntN(70_000), r.IntN(70_000)))
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
				r.try(unix.Chmod(path, oneOf[uint32](r, 0o600, 0o755, 0o4711, 0o1777)))
			}
			at := time.Unix(r.Int64N(1<<33)-1<<30, r.Int64N(1e9))
			spec := unix.NsecToTimespec(at.UnixNano())
			r.try(unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW))
		}
	case n < 91:
		r.try(unix.Mknod(name, oneOf[uint32](r, unix.S_IFCHR, unix.S_IFBLK)|0o644, int(unix.Mkdev(1+r.Uint32N(300), r.Uint32N(100_000)))))
	case n < 94:
		r.try(unix.Mkfifo(name, 0o600))
	case n < 97:
		for i := range 10 + r.IntN(100) {
			r.try(os.WriteFile(filepath.Join(folder, strings.Repeat("y", 1+r.IntN(200))+fmt.Sprint(i)), nil, 0o644))
		}
	case file != "" && !isFolder(name):
		r.try(os.Rename(file, name))
	}
}

// attribute sets or removes an extended attribute.
func (r random) attribute(file string) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	switch r.IntN(3) {
	case 0:
		r.try(unix.Lsetxattr(file, "security.capability", []byte(capability), 0))
	case 1:
		r.try(unix.Lsetxattr(file, fmt.Sprint("user.k", r.IntN(6)), r.bytes(r.IntN(300)), 0))
	default:
		_ = unix.Lremovexattr(file, fmt.Sprint("user.k", r.IntN(6)))
	}
}
