package host

import (
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// listen makes the daemon answer at a socket, too.
func (d *daemon) listen(t *testing.T) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "daemon") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(conn)
		}
	}()
	return path
}

// If the registry is unreachable, the error must not suggest a problem with libvirtd.
func TestUpload_ReadErrorIsNotHostError(t *testing.T) {
	d := volumeDaemon()
	h := d.connected(t)
	h.uri = &url.URL{Scheme: "qemu", Path: "/system", RawQuery: "socket=" + d.listen(t)}
	for _, gone := range []error{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, syscall.EINVAL} {
		err := h.Upload(t.Context(), Upload{
			Pool: "ssd", Name: "disk", Image: io.MultiReader(strings.NewReader("image"), iotest.ErrReader(gone)), Report: func(Progress) {},
		})
		var at *Error
		if !errors.Is(err, gone) || unreachable(err) || !errors.As(err, &at) || at.Op != "upload volume disk in storage pool ssd" {
			t.Errorf("got %v", err)
		}
		if err == nil || !strings.HasSuffix(err.Error(), "(after 5 bytes)") {
			t.Errorf("%v does not say how far it came", err)
		}
	}
}
