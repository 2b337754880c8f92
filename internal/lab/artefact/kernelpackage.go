package artefact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// KernelPackage is a distribution's kernel, as it is packed, and unpacked.
type KernelPackage struct {
	// Package is the Debian package with the kernel.
	Package string
	// Root has the package's files, as far as machines need them that run container images: boot/vmlinuz-<release> and
	// lib/modules/<release>.
	Root string
	// BusyBox is a program without libraries, for images.
	BusyBox string
}

// containerModules are the drivers of machines that run container images, without their dependencies.
var containerModules = []string{
	"virtio_pci", "virtio_blk", "ext4", "qemu_fw_cfg", "crc32c_generic", "virtio_net", "af_packet", "button", "evdev", "virtio_rng",
	"virtio_scsi", "sd_mod",
	"xfs", "vfat", "nls_cp437", "nls_ascii",
}

// Kernel returns the distribution's kernel, which is downloaded but not installed. Its path does not contain the version: it is kept until
// its folder is removed.
func Kernel(ctx context.Context, cache string, log func(format string, args ...any)) (KernelPackage, error) {
	hash := shortHash(fmt.Appendf(nil, "2 %q", containerModules))
	dir, err := folder(ctx, cache, "kernel-"+hash, log, func(ctx context.Context, dir string) error { return unpackKernel(ctx, dir, log) })
	if err != nil {
		return KernelPackage{}, fmt.Errorf("unpack a kernel: %w", err)
	}
	return KernelPackage{
		Package: filepath.Join(dir, "linux.deb"), Root: filepath.Join(dir, "root"),
		BusyBox: filepath.Join(dir, "busybox"),
	}, nil
}

func unpackKernel(ctx context.Context, dir string, log func(string, ...any)) error {
	work := filepath.Join(dir, "packages")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	names := func(ctx context.Context) ([]string, error) {
		kernel, err := kernelPackages(ctx, work)
		return append(kernel, "busybox-static"), err
	}
	root, err := unpack(ctx, work, "a kernel", log, names)
	if err != nil {
		return err
	}
	found, err := findSystem(root)
	if err != nil {
		return err
	}
	kept := filepath.Join(dir, "root")
	if err := keepModules(found.modules, filepath.Join(kept, "lib/modules", filepath.Base(found.modules))); err != nil {
		return err
	}
	packed, err := findFile(work, "linux-image-*.deb")
	if err == nil {
		err = os.Mkdir(filepath.Join(kept, "boot"), 0o755) //nolint:gosec // as in a distribution
	}
	if err != nil {
		return err
	}
	return errors.Join(
		os.Rename(found.vmlinuz, filepath.Join(kept, "boot", filepath.Base(found.vmlinuz))), os.Rename(found.busybox,
			filepath.Join(dir, "busybox")),
		os.Rename(packed, filepath.Join(dir, "linux.deb")), os.RemoveAll(work),
	)
}

// keepModules writes the modules that are needed, and the list of those that are built in, to another folder.
func keepModules(from, to string) error {
	needed, err := loadModules(from, containerModules)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, "kernel/lib"), 0o755); err != nil { //nolint:gosec // as in a distribution
		return err
	}
	for _, m := range needed {
		err = errors.Join(err, os.WriteFile(filepath.Join(to, "kernel/lib", m.name+".ko"), m.content, 0o600))
	}
	return errors.Join(err, os.Rename(filepath.Join(from, "modules.builtin"), filepath.Join(to, "modules.builtin")))
}
