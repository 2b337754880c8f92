package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// stockHost is the name of the lab's third host.
const stockHost = "host-c"

// stockState is libvirt's folder on hosts. Whatever the lab's own folder lies in, all users get there on host-c.
const stockState = "/var/lib/libvirt"

// hideKVM puts a file of root's, its argument, over /dev/kvm. Where root may use KVM and QEMU's user may not, libvirt
// takes what it knows of QEMU for outdated, and asks QEMU again ten times for each definition: seven seconds.
const hideKVM = "[ ! -e /dev/kvm ] || { touch %[1]s && chmod 600 %[1]s && mount --bind %[1]s /dev/kvm; }"

// StockHost gives host-c, which the first call starts. It leaves to libvirt's defaults who runs QEMU, an unprivileged
// user, and that this user is made the owner of what a machine has as long as it runs. So what QEMU opens must be where
// that user gets: in the pools, which are at /var/lib/libvirt/images, or at the host's Guest and Consoles.
func (l *Lab) StockHost(ctx context.Context) (*Host, error) {
	return l.stock.get(ctx, func(ctx context.Context) (*Host, error) {
		dir, err := l.serverFolder(stockHost)
		if err != nil {
			return nil, err
		}
		h := newHost(dir, stockHost, artefact.Image{})
		h.qemu, h.prepare = "", fmt.Sprintf(hideKVM, quote(filepath.Join(dir, "no-kvm")))
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

// copyGuest gives a host a guest of its own: libvirt changes the owner of the files, and labs share them.
func copyGuest(guest artefact.Image, dir string) (artefact.Image, error) {
	for _, from := range []string{guest.Kernel, guest.Initrd} {
		if err := copyFile(from, filepath.Join(dir, "lib", "guest", filepath.Base(from))); err != nil {
			return artefact.Image{}, err
		}
	}
	onHost := func(path string) string { return filepath.Join(stockState, "guest", filepath.Base(path)) }
	return artefact.Image{Kernel: onHost(guest.Kernel), Initrd: onHost(guest.Initrd)}, nil
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

// lookAt lists what exists on a host that starts when it is asked for. Before it is there it counts as untouched, so that a
// test that is the first to ask for it does not seem to leave something.
func lookAt(name string, host *onDemand[*Host]) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (lines []string, err error) {
		host.mu.Lock()
		defer host.mu.Unlock()
		if host.running {
			return host.server.look(ctx)
		}
		for _, pool := range pools {
			lines = append(lines, name+": pool "+pool)
		}
		return lines, nil
	}
}
