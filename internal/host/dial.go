package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
)

// tcpPort is libvirtd's default port.
const tcpPort = "16509"

// connect opens a connection to the libvirtd of a URI, for calls or for a stream. go-libvirt's own dialers take no context, and support
// neither the ssh program nor modular daemons.
func connect(ctx context.Context, uri *url.URL) (net.Conn, error) {
	switch transport := transportOf(uri); transport {
	case "unix":
		return connectLocal(ctx, uri)
	case "tcp":
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(uri.Hostname(), cmp.Or(uri.Port(), tcpPort)))
	case "tls":
		return connectTLS(ctx, uri)
	case "ssh":
		return connectSSH(ctx, uri)
	default:
		return nil, fmt.Errorf("there is no transport %q", transport)
	}
}

// connectLocal connects to the first socket that exists.
func connectLocal(ctx context.Context, uri *url.URL) (conn net.Conn, err error) {
	for _, socket := range sockets(uri, userRuntime) {
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return conn, err
}

// userRuntime is the folder of this user's sockets, found as libvirt does.
func userRuntime() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache")
}

// sockets are the paths on which a libvirtd may listen, in libvirt's own order: the modular daemon for QEMU, which forwards calls about
// storage and secrets to the other daemons, and the monolithic daemon (libvirtd, or virtproxyd in its place).
func sockets(uri *url.URL, userRuntime func() string) []string {
	if socket := uri.Query().Get("socket"); socket != "" {
		return []string{socket}
	}
	dir := "/var/run/libvirt"
	if isSession(uri) {
		dir = userRuntime() + "/libvirt"
	}
	return []string{dir + "/virtqemud-sock", dir + "/libvirt-sock"}
}
