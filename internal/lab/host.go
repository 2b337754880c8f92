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
	"github.com/google/uuid"
)

// pools are the storage pools of each host.
var pools = []string{"ssd", "rust"}

// maxSocketPath is the kernel's limit, in bytes, for the path of a unix socket.
const maxSocketPath = 107

// connectTimeout is the longest that libvirtd may take to accept a connection.
const connectTimeout = 10 * time.Second

// Host is a libvirtd of its own, and the guests that it runs.
type Host struct {
	// Name is the host's name, also to itself.
	Name string
	// URI is libvirt's.
	URI string
	// Dir has the host's files; the targets of its pools are in the folder pools.
	Dir string

	socket  string
	sandbox *sandbox
	daemon  *daemon
}

// startHost makes a host in dir and waits until it answers.
func startHost(ctx context.Context, lab, dir, name string) (*Host, error) {
	h := &Host{Name: name, Dir: dir, socket: filepath.Join(dir, "sock", "libvirt-sock")}
	h.URI = "qemu:///system?socket=" + strings.ReplaceAll(url.PathEscape(h.socket), "%2F", "/")
	if err := h.writeConfiguration(); err != nil {
		return nil, err
	}
	binds := []bind{{filepath.Join(lab, "certs"), filepath.Dir(trusted)}}
	for folder, over := range map[string]string{
		"etc": "/etc/libvirt", "run": "/run/libvirt",
		"lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "cache": "/var/cache/libvirt",
		"ceph": "/etc/ceph",
	} {
		binds = append(binds, bind{filepath.Join(dir, folder), over})
	}
	var err error
	if h.sandbox, err = startSandbox(ctx, lab, name, dir, binds...); err != nil {
		return nil, err
	}
	if err := h.Start(ctx); err != nil {
		return h, err
	}
	return h, h.definePools(ctx)
}

// writeConfiguration has libvirt and QEMU leave the owners of files alone, and run without cgroups, namespaces and
// helpers: the sandbox is all of that.
func (h *Host) writeConfiguration() error {
	longest := filepath.Join(filepath.Dir(h.socket), "libvirt-admin-sock")
	if len(longest) > maxSocketPath {
		return fmt.Errorf("the path of libvirt's socket %s has %d bytes, %d are allowed: move the checkout to a shorter path",
			longest, len(longest), maxSocketPath)
	}
	files := map[string]string{
		"etc/libvirtd.conf": fmt.Sprintf(`unix_sock_dir = %q
unix_sock_rw_perms = "0777"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:stderr"
host_uuid = %q
`, filepath.Dir(h.socket), uuid.NewString()),
		"etc/qemu.conf": `user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
`,
		"ceph/ceph.conf": cephClientConfiguration,
	}
	for _, folder := range []string{"etc", "sock", "ceph"} {
		if err := os.MkdirAll(filepath.Join(h.Dir, folder), 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(h.Dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Start starts libvirtd, at first or after Stop or Kill, and waits until it answers. Guests that run are taken over.
func (h *Host) Start(ctx context.Context) error {
	h.daemon = startDaemon(h.sandbox, h.Dir, "libvirtd", "libvirtd --config /etc/libvirt/libvirtd.conf --pid-file /run/libvirt/libvirtd.pid")
	err := h.daemon.await(ctx, func(ctx context.Context) error {
		_, hangUp, err := h.connect(ctx)
		if err == nil {
			hangUp()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start libvirtd of %s: %w", h.Name, err)
	}
	return nil
}

// Stop ends libvirtd in good order. Guests go on running.
func (h *Host) Stop(ctx context.Context) error { return h.end(ctx, "TERM") }

// Kill ends libvirtd as a crash would. Guests go on running.
func (h *Host) Kill(ctx context.Context) error { return h.end(ctx, "KILL") }

func (h *Host) end(ctx context.Context, signal string) error {
	if err := h.daemon.end(ctx, signal); err != nil {
		return fmt.Errorf("stop libvirtd of %s: %w", h.Name, err)
	}
	return nil
}

// Freeze has libvirtd answer nobody, as if the network swallowed all packets. Guests go on running.
func (h *Host) Freeze(ctx context.Context) error { return h.daemon.send(ctx, "STOP") }

// Thaw undoes Freeze.
func (h *Host) Thaw(ctx context.Context) error { return h.daemon.send(ctx, "CONT") }

// Virsh runs virsh on the host and gives what it printed, also with an error.
func (h *Host) Virsh(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "virsh", append([]string{"-c", h.URI}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("virsh %s on %s: %w: %s", strings.Join(args, " "), h.Name, err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// DefineXML makes a domain, or changes the stored definition of one.
func (h *Host) DefineXML(ctx context.Context, xml string) error {
	l, hangUp, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	if _, err := l.DomainDefineXML(xml); err != nil {
		return fmt.Errorf("define a domain on %s: %w", h.Name, err)
	}
	return nil
}

func (h *Host) definePools(ctx context.Context) error {
	l, hangUp, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	for _, name := range pools {
		target := filepath.Join(h.Dir, "pools", name)
		if err := os.MkdirAll(target, 0o700); err != nil {
			return err
		}
		if err := definePool(l, name, target); err != nil {
			return fmt.Errorf("make the pool %s of %s: %w", name, h.Name, err)
		}
	}
	return nil
}

func definePool(l *libvirt.Libvirt, name, target string) error {
	xml := fmt.Sprintf("<pool type='dir'><name>%s</name><target><path>%s</path></target></pool>", name, target)
	pool, err := l.StoragePoolDefineXML(xml, 0)
	if err != nil {
		return err
	}
	if err := l.StoragePoolSetAutostart(pool, 1); err != nil {
		return err
	}
	return l.StoragePoolCreate(pool, 0)
}

// connect opens a connection that breaks when ctx ends, for libvirt's calls take no context. While it connects a
// deadline does that, as go-libvirt has a data race when somebody hangs up before it is through.
func (h *Host) connect(ctx context.Context) (l *libvirt.Libvirt, hangUp func(), err error) {
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

// dialled is go-libvirt's dialer of a connection that is open already.
type dialled struct{ net.Conn }

// Dial is go-libvirt's.
func (d dialled) Dial() (net.Conn, error) { return d.Conn, nil }

func (h *Host) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	return h.sandbox.close(ctx)
}
