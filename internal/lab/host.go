package lab

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// connectTimeout is the timeout for libvirtd to accept a connection.
var connectTimeout = Patience(10 * time.Second)

// Host is a separate libvirtd with its guests.
type Host struct {
	// Name is the host's name, also to itself.
	Name string
	// URI is libvirt's.
	URI string
	// Dir has the host's files; the targets of its pools are in the folder pools, and consoles in the folder consoles.
	Dir string
	// Pools and Consoles are the paths of these folders on the host.
	Pools, Consoles string
	// Guest is an image that machines can boot, by its paths on the host.
	Guest artefact.Image

	// start is a script at the start of the sandbox. libvirtd and qemu are additions to the common libvirtd.conf and qemu.conf; prepare
	// runs before libvirtd.
	start, libvirtd, qemu string
	prepare               func(context.Context) error
	// within is the prefix of libvirtd's command, and options are appended to it; with an empty within libvirtd runs in the machine's
	// network namespace.
	within, options string
	socket          string
	sandbox         *sandbox
	daemon          *daemon
}

// newHost is a host that runs QEMU as root and sees the paths of this machine.
func newHost(dir, name string, guest artefact.Image) *Host {
	h := &Host{Name: name, Dir: dir, Guest: guest, qemu: asRootQEMU, socket: filepath.Join(dir, "sock", "libvirt-sock")}
	h.Pools, h.Consoles = filepath.Join(dir, "pools"), filepath.Join(dir, "consoles")
	h.URI = "qemu:///system?socket=" + strings.ReplaceAll(url.PathEscape(h.socket), "%2F", "/")
	return h
}

// run starts a host with more of its folders bound over paths of the machine, and waits until it answers.
func (h *Host) run(ctx context.Context, lab string, more ...bind) error {
	if err := h.writeConfiguration(); err != nil {
		return err
	}
	if h.start != "" {
		if err := os.WriteFile(filepath.Join(h.Dir, "start.sh"), []byte(h.start), 0o600); err != nil {
			return err
		}
	}
	binds := []bind{{filepath.Join(lab, "certs"), filepath.Dir(trusted)}}
	for folder, over := range map[string]string{
		"etc": "/etc/libvirt", "run": "/run/libvirt",
		"lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "cache": "/var/cache/libvirt",
		"ceph": "/etc/ceph", "tpm-ca": "/var/lib/swtpm-localca", "tpm-log": "/var/log/swtpm",
	} {
		binds = append(binds, bind{filepath.Join(h.Dir, folder), over})
	}
	var err error
	if h.sandbox, err = startSandbox(ctx, lab, h.Name, h.Dir, append(binds, more...)...); err != nil {
		return err
	}
	if h.prepare != nil {
		if err := h.prepare(ctx); err != nil {
			return fmt.Errorf("prepare %s: %w", h.Name, err)
		}
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	return h.definePools(ctx)
}

// Start starts libvirtd, the first time or after Stop or Kill, and waits until it answers. Running guests are kept.
func (h *Host) Start(ctx context.Context) error {
	h.daemon = startDaemon(h.sandbox, h.Dir, "libvirtd",
		h.within+"libvirtd --config /etc/libvirt/libvirtd.conf --pid-file /run/libvirt/libvirtd.pid"+h.options)
	err := h.daemon.await(ctx, func(ctx context.Context) error {
		_, disconnect, err := h.connect(ctx)
		if err == nil {
			disconnect()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start libvirtd of %s: %w", h.Name, err)
	}
	return nil
}

// Stop ends libvirtd gracefully. Guests keep running.
func (h *Host) Stop(ctx context.Context) error { return h.end(ctx, "TERM") }

// Kill ends libvirtd as a crash would. Guests keep running.
func (h *Host) Kill(ctx context.Context) error { return h.end(ctx, "KILL") }

func (h *Host) end(ctx context.Context, signal string) error {
	if err := h.daemon.end(ctx, signal); err != nil {
		return fmt.Errorf("stop libvirtd of %s: %w", h.Name, err)
	}
	return nil
}

// Freeze stops libvirtd from answering, as if the network dropped all packets. Guests keep running.
func (h *Host) Freeze(ctx context.Context) error { return h.daemon.send(ctx, "STOP") }

// Thaw reverts Freeze.
func (h *Host) Thaw(ctx context.Context) error { return h.daemon.send(ctx, "CONT") }

// Virsh runs virsh on the host and returns its output, also with an error.
func (h *Host) Virsh(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "virsh", append([]string{"-c", h.URI}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("virsh %s on %s: %w: %s", strings.Join(args, " "), h.Name, err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Run runs a command of a shell where the host's libvirtd runs, in its network, and returns its output.
func (h *Host) Run(ctx context.Context, text string) (string, error) {
	return h.sandbox.output(ctx, h.within+"bash -c "+quote(text))
}

// DefineXML defines a domain, or changes the persistent definition of one.
func (h *Host) DefineXML(ctx context.Context, xml string) error {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	if _, err := l.DomainDefineXML(xml); err != nil {
		return fmt.Errorf("define a domain on %s: %w", h.Name, err)
	}
	return nil
}

// connect opens a connection that breaks when ctx ends, because libvirt's calls take no context. While it connects, a deadline is used
// instead, because go-libvirt has a data race if the connection is closed before connecting has finished.
func (h *Host) connect(ctx context.Context) (l *libvirt.Libvirt, disconnect func(), err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	if err != nil {
		return nil, nil, fmt.Errorf("libvirtd of %s does not answer: %w", h.Name, err)
	}
	l = libvirt.NewWithDialer(dialled{conn})
	err = conn.SetDeadline(time.Now().Add(connectTimeout))
	if err == nil {
		err = l.ConnectToURI(libvirt.QEMUSystem)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("libvirtd of %s does not answer: %w", h.Name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return l, func() {
		_ = l.Disconnect()
		stop()
	}, nil
}

// dialled is go-libvirt's dialer of a connection that is already open.
type dialled struct{ net.Conn }

// Dial implements go-libvirt's dialer.
func (d dialled) Dial() (net.Conn, error) { return d.Conn, nil }

func (h *Host) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	return h.sandbox.close(ctx)
}
