//go:build acc

package volume

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// BenchmarkFill measures how 1 GiB, half of it empty, gets onto a volume, until it is on the disk, beside qemu-img convert -n onto a file: from a file, and
// by curl with HTTPS, where qemu-img has a file that curl has downloaded; and the memory of the server.
func BenchmarkFill(b *testing.B) {
	folder := b.TempDir()
	program := filepath.Join(folder, "virtclaim-volume")
	command(b, "go", "build", "-o", program, "./cmd/virtclaim-volume")
	web := httptest.NewTLSServer(http.FileServer(http.Dir(folder)))
	defer web.Close()
	raw := filepath.Join(folder, "disk.raw")
	halfEmpty(b, raw)
	command(b, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, filepath.Join(folder, "disk.qcow2"))
	for _, format := range []string{"raw", "qcow2"} {
		file := filepath.Join(folder, "disk."+format)
		b.Run(format+"/file", func(b *testing.B) {
			compare(b, folder, format, func(string) string { return file }, func(volume string) { fillFrom(b, volume, file) })
		})
		b.Run(format+"/https", func(b *testing.B) {
			memory := int64(0)
			downloaded := func(volume string) string {
				to := filepath.Join(volume, "image")
				command(b, "curl", "-sSfk", "-o", to, web.URL+"/"+filepath.Base(file))
				return to
			}
			compare(b, folder, format, downloaded, func(volume string) { memory = max(memory, uploadWith(b, program, volume, file)) })
			b.ReportMetric(float64(memory)/(1<<20), "MiB-resident")
		})
	}
}

// compare alternates between both, so that other load on the machine slows both down.
func compare(b *testing.B, folder, format string, get func(volume string) string, fill func(volume string)) {
	b.Helper()
	var own, qemu []time.Duration
	for b.Loop() {
		for range 3 {
			qemu = append(qemu, onto(b, folder, func(volume string) {
				target := filepath.Join(volume, diskImage)
				command(b, "qemu-img", "create", "-q", "-f", "raw", target, "1G")
				command(b, "qemu-img", "convert", "-n", "-t", "writeback", "-f", format, "-O", "raw", get(volume), target)
			}))
			own = append(own, onto(b, folder, fill))
		}
	}
	b.ReportMetric(0, "ns/op") // it would be that of both
	b.ReportMetric(median(qemu).Seconds(), "qemu-img-s")
	b.ReportMetric(float64(median(own))/float64(median(qemu)), "own/qemu-img")
}

func fillFrom(b *testing.B, volume, file string) {
	b.Helper()
	r, err := image.LocalFile{Path: file}.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := (Claim{Path: volume}).fill(b.Context(), r, -1, nil, noDigest); err != nil {
		b.Fatal(err)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// onto times what fills a new volume.
func onto(b *testing.B, folder string, fill func(volume string)) time.Duration {
	b.Helper()
	volume, err := os.MkdirTemp(folder, "volume-*")
	if err != nil {
		b.Fatal(err)
	}
	command(b, "sync")
	started := time.Now()
	fill(volume)
	took := time.Since(started)
	if err := os.RemoveAll(volume); err != nil {
		b.Fatal(err)
	}
	return took
}

// uploadWith fills a volume, and returns the peak of the server's resident memory in bytes.
func uploadWith(b *testing.B, program, volume, file string) int64 {
	b.Helper()
	token := filepath.Join(filepath.Dir(volume), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		b.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	started := time.Now()
	server := exec.CommandContext(b.Context(), program, "upload", "-volume", volume, "-listen", address, "-token-file", token, "-scratch", filepath.Dir(volume))
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	for {
		conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Since(started) > time.Minute {
			b.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	command(b, "curl", "-sSfk", "-H", "Authorization: Bearer secret", "-T", file, "https://"+address+"/volume")
	// The peak in a process's resource usage would also be that of the process that has started it.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kib := int64(0)
	if _, err := fmt.Sscanf(peak, "%d kB", &kib); err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		b.Fatal(err)
	}
	return kib << 10
}

// halfEmpty writes 1 GiB in which every second MiB is zeros.
func halfEmpty(b *testing.B, path string) {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for at := int64(0); at < 1<<30; at += 2 << 20 {
		if _, err := io.CopyN(io.NewOffsetWriter(file, at), rand.Reader, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
	if err := file.Truncate(1 << 30); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out))
	}
	return string(out)
}
