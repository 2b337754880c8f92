//go:build acc

package host_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// gigabit is the payload of a network of 1 Gbit/s, in bytes per second.
const gigabit = 118 * mib

// BenchmarkDiskCopy measures the copy of a volume with 512 MiB of data in 2 GiB to another host, which is verified, beside qemu-img
// convert, which verifies nothing, in turns. qemu-img reads the source through qemu-nbd, and writes the target's file itself; of qcow2 it
// makes a new image.
//
// In gigabit, the connections to each libvirtd, and that to qemu-nbd, pass 1 Gbit/s in each direction. In local nothing limits them: it
// compares the processors' work, which all share here, and hosts do not.
func BenchmarkDiskCopy(b *testing.B) {
	for _, network := range []struct {
		name string
		rate float64
	}{{"gigabit", gigabit}, {"local", 0}} {
		for _, format := range []string{"raw", "qcow2"} {
			b.Run(network.name+"-"+format, func(b *testing.B) { benchmarkDiskCopy(b, format, network.rate) })
		}
	}
}

func benchmarkDiskCopy(b *testing.B, format string, rate float64) {
	b.Helper()
	c := newVolumeCopier(b)
	path := c.source(b, "measured", func(path string) error {
		raw := sparse(b, 2<<10, 1)
		return exec.CommandContext(b.Context(), "qemu-img", "convert", "-f", "raw", "-O", format, raw.Path, path).Run()
	})
	c.a, c.b = c.through(b, rate)
	nbd := linked(b, served(b, path), rate)
	var copies, converts []time.Duration
	for b.Loop() {
		for range 3 {
			copies = append(copies, fresh(b, c.b, func() error { return c.copy(b.Context(), "measured") }))
			converts = append(converts, converted(b, nbd, format, path+".converted"))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(copies).Seconds(), "copy-s")
	b.ReportMetric(median(converts).Seconds(), "convert-s")
	b.ReportMetric(ratio(copies, converts), "copy/convert")
}

// through are both hosts over connections of that rate.
func (c volumeCopier) through(b *testing.B, rate float64) (from, to *host.Host) {
	b.Helper()
	configs := map[string]host.Config{}
	for name, uri := range map[string]string{"host-a": c.labA.URI, "host-b": c.labB.URI} {
		parsed, err := url.Parse(uri)
		if err != nil {
			b.Fatal(err)
		}
		configs[name] = host.Config{URI: "qemu:///system?socket=" + linked(b, parsed.Query().Get("socket"), rate)}
	}
	f := host.NewRegistry(configs)
	b.Cleanup(f.Close)
	from, failed := f.Host("host-a")
	to, err := f.Host("host-b")
	if err := errors.Join(failed, err); err != nil {
		b.Fatal(err)
	}
	return from, to
}

// served has qemu-nbd serve the bytes of a file at a socket, whatever its format is.
func served(b *testing.B, path string) (socket string) {
	b.Helper()
	socket = filepath.Join(socketDir(b), "nbd")
	cmd := exec.CommandContext(b.Context(), "qemu-nbd", "--read-only", "--format", "raw", "--persistent", "--fork", "--socket", socket,
		"--pid-file", socket+".pid", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("qemu-nbd: %v: %s", err, out)
	}
	b.Cleanup(func() {
		pid, err := os.ReadFile(socket + ".pid")
		if err == nil {
			err = exec.CommandContext(context.WithoutCancel(b.Context()), "kill", string(pid[:len(pid)-1])).Run()
		}
		if err != nil {
			b.Error(err)
		}
	})
	return socket
}

// converted returns how long qemu-img takes.
func converted(b *testing.B, socket, format, to string) time.Duration {
	b.Helper()
	start := time.Now()
	cmd := exec.CommandContext(b.Context(), "qemu-img", "convert", "-f", format, "-O", format, "nbd+unix:///?socket="+socket, to)
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err := errors.Join(err, os.Remove(to)); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return took
}

func socketDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "link") // the path of b.TempDir is too long for a socket
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// linked returns a socket that forwards to another one, with at most so many bytes in a second in each direction; itself if rate is 0.
func linked(b *testing.B, socket string, rate float64) string {
	b.Helper()
	if rate == 0 {
		return socket
	}
	path := filepath.Join(socketDir(b), "link")
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "unix", path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	out, back := &direction{rate: rate}, &direction{rate: rate}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(b.Context(), "unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			go out.forward(server, client)
			go back.forward(client, server)
		}
	}()
	return path
}

// direction is one of a connection to a host, which all that go through it share.
type direction struct {
	rate float64
	mu   sync.Mutex
	free time.Time
}

// forward copies until one of both ends, and closes them.
func (d *direction) forward(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		<-time.After(time.Until(d.reserve(n)))
		if _, failed := to.Write(part[:n]); failed != nil || err != nil {
			return
		}
	}
}

// late is how much later than in time a part may be, without slowing the next ones down: timers are not exact.
const late = 20 * time.Millisecond

// reserve returns when that many bytes will have passed.
func (d *direction) reserve(n int) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if earliest := time.Now().Add(-late); d.free.Before(earliest) {
		d.free = earliest
	}
	d.free = d.free.Add(time.Duration(float64(n) / d.rate * float64(time.Second)))
	return d.free
}
