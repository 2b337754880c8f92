package host

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

// daemon is a libvirtd that answers each procedure with the same body, which is that of an error in errors, after a call of before. It calls
// hungUp when a client has closed the connection. The answer to a download has the first of downloads behind it.
type daemon struct {
	answers map[uint32][]byte
	errors  map[uint32][]byte
	before  func(procedure uint32)
	hungUp  func()

	downloads []string
}

// The supported procedures, from src/remote/remote_protocol.x.
const (
	procAuthList   = 66
	procPoolLookup = 84
)

// volumeDaemon returns a daemon with a pool and a volume.
func volumeDaemon() *daemon {
	const text = "\x00\x00\x00\x04disk"
	return &daemon{
		answers: map[uint32][]byte{
			procAuthList: make([]byte, 4), procPoolLookup: []byte(text + "0123456789abcdef"),
		},
		errors: map[uint32][]byte{}, before: func(uint32) {}, hungUp: func() {},
	}
}

func (d *daemon) serve(conn net.Conn) {
	defer d.hungUp()
	defer func() { _ = conn.Close() }()
	for {
		packet := make([]byte, 28)
		if _, err := io.ReadFull(conn, packet); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(packet))-28); err != nil {
			return
		}
		procedure := binary.BigEndian.Uint32(packet[12:])
		d.before(procedure)
		body, fails := d.errors[procedure]
		if !fails {
			body = d.answers[procedure]
		}
		answer := slices.Concat(packet, body)
		binary.BigEndian.PutUint32(answer, uint32(len(answer)))
		binary.BigEndian.PutUint32(answer[16:], 1) // a reply
		if fails {
			binary.BigEndian.PutUint32(answer[24:], 1)
		}
		if procedure == procVolumeDownload && !fails {
			answer = append(answer, d.download(packet)...)
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// download returns the packets of a download, or confirms that it is finished.
func (d *daemon) download(packet []byte) (packets []byte) {
	const call, data = 0, 3
	parts := []string{""}
	if binary.BigEndian.Uint32(packet[16:]) == call {
		if d.downloads[0] != "" {
			parts = []string{d.downloads[0], ""}
		}
		d.downloads = d.downloads[1:]
	}
	for _, part := range parts {
		p := slices.Concat(packet, []byte(part))
		binary.BigEndian.PutUint32(p, uint32(len(p)))
		binary.BigEndian.PutUint32(p[16:], data)
		packets = append(packets, p...)
	}
	return packets
}

// connected returns a host that has a connection to the daemon.
func (d *daemon) connected(t *testing.T) *Host {
	t.Helper()
	client, server := net.Pipe()
	go d.serve(server)
	l := libvirt.NewWithDialer(dialled{client})
	if err := l.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Disconnect() })
	return &Host{Key: "host-a", timeout: dialTimeout, uri: &url.URL{Scheme: "qemu", Path: "/system"}, calls: &conn{Libvirt: l, way: client}}
}

// After the error of a cancelled creation the caller may create another volume with that name.
func TestStorageVolume_UntouchedAfterCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	returned, closed := make(chan struct{}), make(chan struct{})
	d := volumeDaemon()
	d.hungUp = func() { close(closed) }
	d.before = func(procedure uint32) {
		if procedure == procPoolLookup {
			cancel()
			<-returned
		}
	}
	changed := false
	_, err := onPool(ctx, d.connected(t), "make a volume", "ssd", func(*libvirt.Libvirt, libvirt.StoragePool) (struct{}, error) {
		changed = true
		return struct{}{}, nil
	})
	close(returned)
	<-closed // after the call in the background has ended
	if !errors.Is(err, context.Canceled) || changed {
		t.Errorf("got %v; it was changed all the same: %t", err, changed)
	}
}
