package artefact

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Image is a guest to boot: the paths of an uncompressed kernel, which QEMU
// starts in half the time of a compressed one, and of its initial RAM disk.
type Image struct {
	Kernel, Initrd string
	// Compressed is the same kernel as it was packed. UEFI starts no other one,
	// and a machine with a TPM has ACPI tables that the uncompressed one can't
	// read.
	Compressed string
	// Parameters are the kernel parameters for the fastest boot without
	// acceleration: few messages on the slow serial port, no self-tests of
	// algorithms, and no write protection of the kernel's pages.
	Parameters string
}

var (
	//go:embed init.sh
	initScript []byte
	//go:embed power-off.sh
	powerOffScript []byte
)

// guestModules are the drivers of the guest, without their dependencies.
var guestModules = []string{
	"virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "sr_mod", "isofs", "ata_piix", "ahci", "virtio_net", "e1000",
	"virtio_console", "virtio_balloon", "button", "evdev",
}

// moreModules are loaded on request.
var moreModules = []string{
	"floppy", "xhci_pci", "ehci_pci", "uhci_hcd", "usb_storage",
	"tpm_crb", "tpm_tis", "virtio_rng", "9pnet_virtio", "9p", "virtiofs", "i6300esb", "efivarfs",
}

// guestBuilder is incremented when the same scripts and modules result in
// another image.
const guestBuilder = 2

// Guest returns the guest of the package comment, built from the distribution's
// kernel and BusyBox, which are downloaded but not installed. Its path does not
// contain their version: an image is kept until its folder is removed.
func Guest(ctx context.Context, cache string, log func(format string, args ...any)) (Image, error) {
	hash := shortHash(fmt.Appendf(nil, "%d %q %q %q %q", guestBuilder, guestModules, moreModules, initScript, powerOffScript))
	dir, err := folder(ctx, cache, "guest-"+hash, log, func(ctx context.Context, dir string) error {
		return buildGuest(ctx, dir, log)
	})
	if err != nil {
		return Image{}, fmt.Errorf("build the guest: %w", err)
	}
	return imageIn(dir), nil
}

func imageIn(dir string) Image {
	return Image{
		Kernel: filepath.Join(dir, "vmlinux"), Compressed: filepath.Join(dir, "vmlinuz"), Initrd: filepath.Join(dir, "initrd.gz"),
		Parameters: "console=ttyS0 quiet no_timer_check cryptomgr.notests rodata=off",
	}
}

func buildGuest(ctx context.Context, dir string, log func(string, ...any)) error {
	work := filepath.Join(dir, "packages")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	system, err := unpackSystem(ctx, work, log)
	if err != nil {
		return err
	}
	log("writing the guest's kernel and RAM disk")
	return errors.Join(writeImage(imageIn(dir), system), os.RemoveAll(work))
}

func writeImage(image Image, system system) error {
	kernel, err := system.kernel()
	if err != nil {
		return fmt.Errorf("extract the kernel from %s: %w", system.vmlinuz, err)
	}
	if err := os.WriteFile(image.Kernel, kernel, 0o644); err != nil { //nolint:gosec // QEMU may run as another user
		return err
	}
	compressed, err := os.ReadFile(system.vmlinuz)
	if err != nil {
		return err
	}
	if err := os.WriteFile(image.Compressed, compressed, 0o644); err != nil { //nolint:gosec // as above
		return err
	}
	modules, err := loadModules(system.modules, guestModules)
	if err != nil {
		return err
	}
	more := map[string][]module{}
	for _, name := range moreModules {
		if more[name], err = loadModules(system.modules, []string{name}); err != nil {
			return err
		}
	}
	busybox, err := os.ReadFile(system.busybox)
	if err != nil {
		return err
	}
	return writeInitrd(image.Initrd, busybox, modules, more)
}
