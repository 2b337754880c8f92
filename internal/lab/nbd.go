package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// nbdGreeting is the first message of an NBD server.
const nbdGreeting = "NBDMAGIC"

// NBD is a server of network block devices. Each export has its own process.
type NBD struct {
	dir     string
	sandbox *sandbox

	mu      sync.Mutex
	last    int
	daemons map[string]*daemon // by NBDExport.Server
}

// NBDSpec describes an export to create.
type NBDSpec struct {
	// Name is the export's; empty means the default export.
	Name string
	// Size is in bytes.
	Size int64
	// Content is the beginning of the disk; the rest is zeros.
	Content []byte
	// ReadOnly refuses writes.
	ReadOnly bool
	// Unix uses a unix socket instead of a port.
	Unix bool
}

// NBDExport is a disk that NBD serves, to many clients at once.
type NBDExport struct {
	// Server is host:port, or the path of a unix socket.
	Server string
	Name   string
	// Path is the backing file.
	Path string
	// Size is in bytes.
	Size int64
}

// URL is the URL of the export for QEMU's tools.
func (e NBDExport) URL() string {
	if e.network() == "unix" {
		return "nbd+unix:///" + e.Name + "?socket=" + e.Server
	}
	return "nbd://" + e.Server + "/" + e.Name
}

// network is the server's network for net.Dial.
func (e NBDExport) network() string {
	if filepath.IsAbs(e.Server) {
		return "unix"
	}
	return "tcp"
}

// NBD returns the lab's NBD server, which the first call starts.
func (l *Lab) NBD(ctx context.Context) (*NBD, error) {
	return l.nbd.get(ctx, func(ctx context.Context) (*NBD, error) {
		dir, err := l.serverFolder("nbd")
		if err != nil {
			return nil, err
		}
		n := &NBD{dir: dir, daemons: map[string]*daemon{}}
		n.sandbox, err = startSandbox(ctx, l.Dir, "nbd", dir)
		return n, err
	})
}

// AddExport creates an export with a sparse backing file, and waits until it is served.
func (n *NBD) AddExport(ctx context.Context, spec NBDSpec) (NBDExport, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	name := strconv.Itoa(n.last)
	e := NBDExport{Name: spec.Name, Path: filepath.Join(n.dir, name+".img"), Size: spec.Size}
	if err := makeImage(e.Path, spec.Size, spec.Content); err != nil {
		return NBDExport{}, fmt.Errorf("make the backing file of an NBD export: %w", err)
	}
	var err error
	if e.Server, err = freePort(ctx); err != nil {
		return NBDExport{}, err
	}
	if spec.Unix {
		e.Server = filepath.Join(n.dir, name+".sock")
	}
	d := startDaemon(n.sandbox, n.dir, name, serveNBD(e, spec.ReadOnly))
	n.daemons[e.Server] = d
	if err := d.await(ctx, e.greets); err != nil {
		return NBDExport{}, fmt.Errorf("start an NBD server on %s: %w", e.Server, err)
	}
	return e, nil
}

// serveNBD is the command that serves an export. By default qemu-nbd would serve one client, and end with it.
func serveNBD(e NBDExport, readOnly bool) string {
	at := "--socket " + quote(e.Server)
	if host, port, err := net.SplitHostPort(e.Server); err == nil {
		at = "--bind " + host + " --port " + port
	}
	command := fmt.Sprintf("qemu-nbd --persistent --shared 20 %s --export-name %s --format raw --discard unmap", at, quote(e.Name))
	if readOnly {
		command += " --read-only"
	}
	return command + " " + quote(e.Path)
}

// greets checks that the server sends its greeting.
func (e NBDExport) greets(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, e.network(), e.Server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	greeting := make([]byte, len(nbdGreeting))
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err
	}
	if string(greeting) != nbdGreeting {
		return fmt.Errorf("it greets with %q", greeting)
	}
	return nil
}

// RemoveExport ends an export, also for clients that have it open, and removes its backing file.
func (n *NBD) RemoveExport(ctx context.Context, e NBDExport) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.daemons[e.Server]; d != nil {
		if err := d.end(ctx, "KILL"); err != nil {
			return fmt.Errorf("end the NBD server on %s: %w", e.Server, err)
		}
		delete(n.daemons, e.Server)
	}
	return os.Remove(e.Path)
}

func (n *NBD) close(ctx context.Context) error {
	if n == nil {
		return nil
	}
	return n.sandbox.close(ctx)
}
