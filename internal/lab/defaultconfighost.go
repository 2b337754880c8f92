package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// defaultConfigHost is the name of the lab's third host.
const defaultConfigHost = "host-c"

// stockState is libvirt's folder on hosts. All users can enter it on host-c, wherever the lab's own folder is.
const stockState = "/var/lib/libvirt"

// hideKVM mounts a file of root's, its argument, over /dev/kvm. Where root may use KVM and QEMU's user may not, libvirt takes its cached
// capabilities of QEMU for outdated, and probes QEMU ten times for each definition: seven seconds.
const hideKVM = "[ ! -e /dev/kvm ] || { touch %[1]s && chmod 600 %[1]s && mount --bind %[1]s /dev/kvm; }"

// DefaultConfigHost returns host-c, which the first call starts. It has libvirt's defaults: QEMU runs as an unprivileged user, which
// libvirt makes the owner of a machine's files as long as the machine runs. So files that QEMU opens must be where that user can access
// them: in the pools, which are at /var/lib/libvirt/images, or at the host's Guest and Consoles.
func (l *Lab) DefaultConfigHost(ctx context.Context) (*Host, error) {
	return l.defaultConfig.get(ctx, func(ctx context.Context) (*Host, error) {
		dir, err := l.serverFolder(defaultConfigHost)
		if err != nil {
			return nil, err
		}
		h := newHost(dir, defaultConfigHost, artefact.Image{})
		h.qemu, h.prepare = "", func(ctx context.Context) error {
			if err := h.sandbox.run(ctx, fmt.Sprintf(hideKVM, quote(filepath.Join(dir, "no-kvm")))); err != nil {
				return err
			}
			return startDaemon(h.sandbox, dir, "virtlogd", "virtlogd").await(ctx, func(ctx context.Context) error {
				return h.sandbox.run(ctx, "test -S /run/libvirt/virtlogd-sock")
			})
		}
		// libvirt's own folders, which are mount points for those of the lab.
		for _, folder := range []string{"run", "lib/images", "lib/consoles", "lib/guest", "lib", "log", "cache", "pools"} {
			if err := makeFolder(filepath.Join(dir, folder)); err != nil {
				return nil, err
			}
		}
		if h.Guest, err = copyGuest(l.Guest, dir); err != nil {
			return nil, err
		}
		h.Pools, h.Consoles = filepath.Join(stockState, "images"), filepath.Join(stockState, "consoles")
		return h, h.run(ctx, l.Dir,
			bind{filepath.Join(dir, "pools"), h.Pools},
			bind{filepath.Join(dir, "consoles"), h.Consoles})
	})
}

// copyGuest copies the guest for a host: libvirt changes the owner of the files, and labs share them.
func copyGuest(guest artefact.Image, dir string) (artefact.Image, error) {
	for _, from := range []string{guest.Kernel, guest.Compressed, guest.Initrd} {
		if err := copyFile(from, filepath.Join(dir, "lib", "guest", filepath.Base(from))); err != nil {
			return artefact.Image{}, err
		}
	}
	onHost := func(path string) string { return filepath.Join(stockState, "guest", filepath.Base(path)) }
	return artefact.Image{Kernel: onHost(guest.Kernel), Compressed: onHost(guest.Compressed), Initrd: onHost(guest.Initrd)}, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	return err
}
