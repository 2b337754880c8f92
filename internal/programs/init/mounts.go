//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

const sysroot = "/sysroot"

type fileSystem struct {
	kind, folder string
	flags        uintptr
	data         string
	optional     bool // not every kernel has it
}

// mountInitial mounts what init itself needs.
func mountInitial() error {
	for _, fs := range []fileSystem{
		{kind: "proc", folder: "/proc"},
		{kind: "sysfs", folder: "/sys"},
		{kind: "devtmpfs", folder: "/dev", data: "mode=0755"},
	} {
		if err := os.MkdirAll(fs.folder, 0o700); err != nil {
			return err
		}
		// The kernel may have mounted /dev.
		if err := unix.Mount(fs.kind, fs.folder, fs.kind, fs.flags, fs.data); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", fs.folder, err)
		}
	}
	return nil
}

// mountAll mounts the root file system, what the program expects in it from the kernel, and the configured disks.
func (m *machine) mountAll(ctx context.Context) error {
	if err := m.mountRoot(ctx); err != nil {
		return fmt.Errorf("root disk: %w", err)
	}
	const private = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, fs := range []fileSystem{
		{kind: "proc", folder: "/proc", flags: private},
		{kind: "sysfs", folder: "/sys", flags: private},
		{kind: "cgroup2", folder: "/sys/fs/cgroup", flags: private, optional: true},
		{kind: "devtmpfs", folder: "/dev", flags: unix.MS_NOSUID, data: "mode=0755"},
		{kind: "devpts", folder: "/dev/pts", flags: unix.MS_NOSUID | unix.MS_NOEXEC, data: "ptmxmode=0666,mode=0620,gid=5"},
		{kind: "tmpfs", folder: "/dev/shm", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
		{kind: "mqueue", folder: "/dev/mqueue", flags: private, optional: true},
	} {
		if err := m.mount(fs.kind, fs); err != nil && !fs.optional {
			return err
		}
	}
	linkStandardFiles(filepath.Join(sysroot, "dev"))
	// A disk in a folder of another one comes after it.
	for _, mount := range slices.SortedFunc(slices.Values(m.config.Mounts),
		func(a, b guestinit.Mount) int { return strings.Compare(a.Path, b.Path) }) {
		if err := m.mountDisk(ctx, mount); err != nil {
			return fmt.Errorf("mount the disk %q on %s: %w", mount.Disk, mount.Path, err)
		}
	}
	// What was not loaded until now never is.
	return os.RemoveAll("/modules")
}

func (m *machine) mountRoot(ctx context.Context) error {
	device, err := awaitDisk(ctx, m.config.Root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(sysroot, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(device, sysroot, "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s as ext4: %w", device, err)
	}
	m.mounted = append(m.mounted, sysroot)
	m.root = device // only of ext4 the first sector is free: on other disks it is data
	if err := writeStatus(device, guestinit.Status{State: guestinit.Running}); err != nil {
		return err
	}
	if err := growToDisk(device, sysroot, "/"); err != nil {
		say("%v", err)
	}
	return nil
}

func (m *machine) mountDisk(ctx context.Context, mount guestinit.Mount) error {
	device, err := awaitDisk(ctx, mount.Disk)
	if err != nil {
		return err
	}
	kind, err := fileSystemOf(device)
	if mount.Format != "" && errors.Is(err, errNoFileSystem) {
		kind, err = mount.Format, formatDisk(device, mount.Path)
	}
	if err != nil {
		return err
	}
	loadModules(moduleList + "." + kind)
	fs := fileSystem{kind: kind, folder: mount.Path}
	if mount.ReadOnly {
		fs.flags = unix.MS_RDONLY
	}
	if err := m.mount(device, fs); err != nil {
		return err
	}
	if kind == "ext4" && !mount.ReadOnly {
		if err := growToDisk(device, m.mounted[len(m.mounted)-1], mount.Path); err != nil {
			say("the disk %q on %s: %v", mount.Disk, mount.Path, err)
		}
	}
	return nil
}

func (m *machine) mount(source string, fs fileSystem) error {
	folder, err := openFolder(sysroot, fs.folder)
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // a handle without content
	path, err := os.Readlink(handlePath(folder))
	if err != nil {
		return err
	}
	if err := unix.Mount(source, handlePath(folder), fs.kind, fs.flags, fs.data); err != nil {
		return fmt.Errorf("mount %s as %s: %w", fs.folder, fs.kind, err)
	}
	m.mounted = append(m.mounted, path)
	return nil
}

func linkStandardFiles(dev string) {
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil && !errors.Is(err, os.ErrExist) {
			say("%v", err)
		}
	}
}

// unmountAll leaves no file system that must be repaired at the next start. What something still holds is made read-only at least.
func (m *machine) unmountAll() {
	unix.Sync()
	for i := len(m.mounted) - 1; i >= 0; i-- {
		folder := m.mounted[i]
		err := unix.Unmount(folder, unix.UMOUNT_NOFOLLOW)
		if err == nil {
			continue
		}
		// Only what has a disk is worth a word.
		if readOnly := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); readOnly != nil {
			say("unmount %s: %v; make it read-only: %v", folder, err, readOnly)
		}
	}
}
