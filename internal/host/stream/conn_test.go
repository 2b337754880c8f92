package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// daemon is a libvirtd with one volume. It simulates behaviour that is rare with a real one.
type daemon struct {
	t    *testing.T
	conn net.Conn
	// ways are the offered authentication methods.
	ways []uint32
	// at is called before each part of a stream is processed, and may process it instead.
	at func(d *daemon, part int, p packet) (done bool)
	// early is the number of packets of a download that are sent before the reply to its call.
	early int
	// parts are what a download sends instead of the content.
	parts []packet

	content []byte
	polkit  bool
}

// dial returns a connection to the daemon.
func (d *daemon) dial(t *testing.T) net.Conn {
	t.Helper()
	d.t = t
	var client net.Conn
	client, d.conn = net.Pipe()
	go d.serve()
	t.Cleanup(func() { _ = d.conn.Close() })
	return client
}

func (d *daemon) answer(to packet, kind, status uint32, body []byte) {
	p := packet{procedure: to.procedure, kind: kind, serial: to.serial, status: status, body: body}
	_, _ = d.conn.Write(p.appendTo(nil))
}

func refusal(message string) []byte {
	var e encoder
	for _, w := range []uint32{38, 18, 1} {
		e.word(w)
	}
	e.text(message)
	return e
}

func (d *daemon) serve() {
	for part := 0; ; {
		p, err := read(d.conn)
		if err != nil {
			return
		}
		switch {
		case p.kind == kindCall && p.procedure == procAuthList:
			var e encoder
			e.word(uint32(len(d.ways)))
			for _, w := range d.ways {
				e.word(w)
			}
			d.answer(p, kindReply, statusOK, e)
		case p.kind == kindCall && p.procedure == procDownload:
			d.give(p)
		case p.kind == kindCall:
			d.polkit = d.polkit || p.procedure == procPolkit
			d.answer(p, kindReply, statusOK, nil)
		case p.procedure == procDownload:
			d.answer(p, kindStream, statusOK, nil)
		default:
			if part++; d.at == nil || !d.at(d, part, p) {
				d.take(p)
			}
		}
	}
}

// data is a part of a download; without any, its end.
func data(body []byte) packet { return packet{kind: kindStream, status: statusContinue, body: body} }

func (d *daemon) give(to packet) {
	parts := d.parts
	if parts == nil {
		parts = []packet{data(d.content), data(nil)}
	}
	for _, a := range slices.Insert(slices.Clone(parts), d.early, packet{kind: kindReply}) {
		d.answer(to, a.kind, a.status, a.body)
	}
}

func (d *daemon) take(p packet) {
	switch {
	case p.kind == kindHole:
		d.content = append(d.content, make([]byte, binary.BigEndian.Uint64(p.body))...)
	case p.status == statusContinue:
		d.content = append(d.content, p.body...)
	default:
		d.answer(p, kindStream, statusOK, nil)
	}
}

var disk = libvirt.StorageVol{Pool: "ssd", Name: "disk", Key: "/ssd/disk"}

func opened(t *testing.T, d *daemon) *Conn {
	t.Helper()
	c, err := Open(t.Context(), d.dial(t), "qemu:///system")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConn_UploadAndDownload(t *testing.T) {
	for _, ways := range [][]uint32{nil, {authNone}, {authPolkit}, {1, authPolkit}} {
		d := &daemon{ways: ways}
		c := opened(t, d)
		u, err := c.Upload(disk, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Repeat([]byte("data"), packetSize), make([]byte, 3*blockSize)...)
		if _, err := CopySparse(u, bytes.NewReader(want), func(int64) {}); err != nil {
			t.Fatal(err)
		}
		if err := u.Finish(); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := c.Download(&got, disk, 0, int64(len(want))); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%v, and %d of %d bytes came back", err, got.Len(), len(want))
		}
		if d.polkit != (len(ways) > 0 && ways[len(ways)-1] == authPolkit) {
			t.Errorf("offered %v, polkit was asked: %t", ways, d.polkit)
		}
	}
}

// libvirtd sends replies and data from different threads.
func TestConn_DownloadBeforeReply(t *testing.T) {
	want := []byte("content")
	for early := range 3 {
		var got bytes.Buffer
		err := opened(t, &daemon{content: want, early: early}).Download(&got, disk, 0, int64(len(want)))
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("with %d packets before the reply: %v and %q", early, err, got.Bytes())
		}
	}
}

func TestConn_PasswordIsNotSupported(t *testing.T) {
	if _, err := Open(t.Context(), (&daemon{ways: []uint32{1}}).dial(t), "qemu:///system"); err == nil || !strings.Contains(err.Error(), "SASL") {
		t.Errorf("got %v", err)
	}
}

// upload sends many packets and finishes.
func upload(c *Conn) error {
	u, err := c.Upload(disk, 0, false)
	if err != nil {
		return err
	}
	if _, err := u.Write(make([]byte, 64*packetSize)); err != nil {
		return err
	}
	return u.Finish()
}

// Each premature end of an upload is an error that contains the cause.
func TestConn_UploadEnds(t *testing.T) {
	for name, c := range map[string]struct {
		at   func(d *daemon, part int, p packet) bool
		want string
	}{
		"the disk is full": {func(d *daemon, part int, p packet) bool {
			if part == 3 {
				d.answer(p, kindStream, statusError, refusal("no space left on device"))
			}
			return part >= 3
		}, "no space left on device"},
		"the finish is refused": {func(d *daemon, _ int, p packet) bool {
			if p.status == statusOK {
				d.answer(p, kindStream, statusError, refusal("the last write failed"))
			}
			return p.status == statusOK
		}, "the last write failed"},
		"a reply to a stream": {func(d *daemon, part int, p packet) bool {
			if part == 2 {
				d.answer(p, kindReply, statusError, refusal("holes are not supported"))
			}
			return part >= 2
		}, "holes are not supported"},
		"it hangs up": {func(d *daemon, part int, _ packet) bool {
			if part == 5 {
				_ = d.conn.Close()
			}
			return part >= 5
		}, libvirt.ErrInterrupted.Error()},
		"it hangs up at the end": {func(d *daemon, _ int, p packet) bool {
			if p.status == statusOK {
				_ = d.conn.Close()
			}
			return p.status == statusOK
		}, libvirt.ErrInterrupted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if err := upload(opened(t, &daemon{at: c.at})); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestConn_StalledUploadTimesOut(t *testing.T) {
	for _, stuck := range []int{1, 65} { // the first part, and the finish
		synctest.Test(t, func(t *testing.T) {
			stop, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := opened(t, &daemon{at: func(_ *daemon, part int, _ packet) bool {
				if part == stuck {
					<-stop.Done()
				}
				return false
			}})
			if err := upload(c); !errors.Is(err, ErrStalled) {
				t.Errorf("part %d: %v", stuck, err)
			}
			_ = c.Close()
		})
	}
}

// stubborn is a connection to a dead host in the worst case: it supports no deadlines, and its Close blocks like all other calls.
type stubborn struct {
	net.Conn
	writes int
	gone   <-chan struct{}
}

func (c *stubborn) Write(p []byte) (int, error) {
	if c.writes--; c.writes < 0 {
		<-c.gone
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func (c *stubborn) Close() error {
	<-c.gone
	return c.Conn.Close()
}

func (c *stubborn) SetDeadline(time.Time) error { return errors.New("deadline not supported") }

func (c *stubborn) SetReadDeadline(time.Time) error { return errors.New("deadline not supported") }

func (c *stubborn) SetWriteDeadline(time.Time) error { return errors.New("deadline not supported") }

func TestConn_LostHostTimesOut(t *testing.T) {
	for name, c := range map[string]struct {
		cancelAfter, want time.Duration
		err               error
	}{
		"by itself":        {time.Hour, stallTime, ErrStalled},
		"when it is ended": {time.Second, time.Second, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				gone, leave := context.WithCancel(t.Context())
				defer leave()
				conn := (&daemon{}).dial(t)
				opened, err := Open(ctx, &stubborn{conn, 10, gone.Done()}, "qemu:///system")
				if err != nil {
					t.Fatal(err)
				}
				defer time.AfterFunc(c.cancelAfter, cancel).Stop()
				start := time.Now()
				err = upload(opened)
				if e := opened.Close(); e != nil {
					t.Error(e)
				}
				if took := time.Since(start); took != c.want || !errors.Is(err, c.err) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

func TestConn_CanceledUploadEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("Ctrl-C")
	d := &daemon{at: func(_ *daemon, part int, _ packet) bool {
		if part == 2 {
			cancel(gone)
		}
		return part >= 2
	}}
	c, err := Open(ctx, d.dial(t), "qemu:///system")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := upload(c); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(packet{procedure: procUpload, kind: kindReply, status: statusError, body: refusal("no")}.appendTo(nil))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if p, err := read(bytes.NewReader(data)); err == nil {
			_ = p.failure()
		}
	})
}
