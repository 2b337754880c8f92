//go:build acc

package host_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const mib = 1 << 20

// BenchmarkUpload measures an upload of 1 GiB, half of it empty: its time and its bytes compared with virsh, the latency of a small
// call during the upload, and the memory.
func BenchmarkUpload(b *testing.B) {
	l := acctest.Lab(b)
	file := sparse(b, 1<<10, 2)
	b.Run("time", func(b *testing.B) { benchmarkTime(b, l, file) })
	b.Run("wire", func(b *testing.B) { benchmarkWire(b, l, file) })
	b.Run("calls", func(b *testing.B) { benchmarkCalls(b, l, file) })
	b.Run("memory", func(b *testing.B) { benchmarkMemory(b, l, file) })
}

// benchmarkTime alternates between the variants, so that other load on the machine slows all of them down.
func benchmarkTime(b *testing.B, l *lab.Lab, file image.LocalFile) {
	b.Helper()
	h, labHost := hostA(b, l)
	digest, err := file.Hash(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	planned := image.LocalFile{Path: file.Path, Digest: digest}
	var virsh, plain, checked []time.Duration
	for b.Loop() {
		virsh = append(virsh, fresh(b, h, func() error { return virshUpload(b, labHost.URI, file) }))
		plain = append(plain, fresh(b, h, func() error { return ownUpload(b, h, file) }))
		checked = append(checked, fresh(b, h, func() error { return ownUpload(b, h, planned) }))
	}
	b.ReportMetric(0, "ns/op") // it would be that of all three
	b.ReportMetric(median(virsh).Seconds(), "virsh-s")
	b.ReportMetric(ratio(plain, virsh), "plain/virsh")
	b.ReportMetric(ratio(checked, virsh), "checked/virsh")
}

// benchmarkWire is separate from the time, because a tap is slower.
func benchmarkWire(b *testing.B, l *lab.Lab, file image.LocalFile) {
	b.Helper()
	h, tap := tapped(b, l)
	for b.Loop() {
		start := tap.Uploaded()
		fresh(b, h, func() error { return ownUpload(b, h, file) })
		own := tap.Uploaded()
		fresh(b, h, func() error { return virshUpload(b, tap.URI, file) })
		b.ReportMetric(float64(own-start)/mib, "MiB-own")
		b.ReportMetric(float64(tap.Uploaded()-own)/mib, "MiB-virsh")
	}
	b.ReportMetric(0, "ns/op")
}

// benchmarkCalls makes small calls one after the other, without an upload and with one.
func benchmarkCalls(b *testing.B, l *lab.Lab, file image.LocalFile) {
	b.Helper()
	h, _ := hostA(b, l)
	var idle, busy []time.Duration
	for b.Loop() {
		quiet := time.NewTimer(time.Second / 2)
		idle = append(idle, smallCalls(b, h, quiet.C)...)
		fresh(b, h, func() error {
			done, uploaded := make(chan time.Time), make(chan error, 1)
			go func() {
				defer close(done)
				uploaded <- ownUpload(b, h, file)
			}()
			busy = append(busy, smallCalls(b, h, done)...)
			return <-uploaded
		})
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(idle).Seconds()*1e6, "µs-idle")
	b.ReportMetric(median(busy).Seconds()*1e6, "µs-busy")
	b.ReportMetric(ratio(busy, idle), "busy/idle")
}

func benchmarkMemory(b *testing.B, l *lab.Lab, file image.LocalFile) {
	b.Helper()
	h, _ := hostA(b, l)
	var peak int64
	for b.Loop() {
		fresh(b, h, func() (err error) {
			peak = max(peak, heapDuring(func() { err = ownUpload(b, h, file) }))
			return err
		})
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(peak)/mib, "MiB-heap")
}

// fresh returns the duration of do with a new volume.
func fresh(b *testing.B, h *host.Host, do func() error) time.Duration {
	b.Helper()
	createVolume(b, h, "measured")
	start := time.Now()
	err := do()
	took := time.Since(start)
	if err := errors.Join(err, h.DeleteVolume(b.Context(), "ssd", "measured")); err != nil {
		b.Fatal(err)
	}
	return took
}

func ownUpload(b *testing.B, h *host.Host, file image.LocalFile) error {
	b.Helper()
	content, err := file.Open(b.Context())
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return into(b.Context(), h, "measured", content)
}

func virshUpload(b *testing.B, uri string, file image.LocalFile) error {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "virsh", "-q", "-c", uri, "vol-upload", "--sparse", "measured", file.Path, "--pool", "ssd")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// smallCalls returns the duration of each call until enough.
func smallCalls(b *testing.B, h *host.Host, enough <-chan time.Time) (took []time.Duration) {
	b.Helper()
	for {
		start := time.Now()
		if _, err := h.LookupByName(b.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
			b.Error(err)
			return took
		}
		took = append(took, time.Since(start))
		select {
		case <-enough:
			return took
		default:
		}
	}
}

// median is hardly affected by a few outliers.
func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }
