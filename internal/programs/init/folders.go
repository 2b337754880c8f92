//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder below root, and makes what is missing of its path. Links are followed as the program will follow them:
// absolute ones begin at root, and none leaves it.
func openFolder(root, name string) (*os.File, error) {
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(top) //nolint:errcheck // a handle without content
	current, done := -1, "."
	for _, part := range append([]string{"."}, strings.FieldsFunc(path.Clean(name), func(r rune) bool { return r == '/' })...) {
		parent := current
		done = path.Join(done, part)
		current, err = openIn(top, done)
		if errors.Is(err, unix.ENOENT) && parent >= 0 {
			if err = unix.Mkdirat(parent, part, 0o755); err == nil {
				current, err = openIn(top, done)
			}
		}
		if parent >= 0 {
			_ = unix.Close(parent)
		}
		if err != nil {
			return nil, fmt.Errorf("folder /%s of the root file system: %w", done, err)
		}
	}
	return os.NewFile(uintptr(current), path.Join(root, name)), nil
}

// readBelow reads a file below root, whose links are followed in the same way. A FIFO in its place is empty.
func readBelow(root, name string) ([]byte, error) {
	top, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer top.Close() //nolint:errcheck // it was only read
	fd, err := unix.Openat2(int(top.Fd()), name,
		&unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(file, mebibyte))
}

func openIn(top int, name string) (int, error) {
	return unix.Openat2(top, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
}

// handlePath names an open file, wherever its links have led.
func handlePath(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }
