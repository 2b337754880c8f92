//go:build acc

package iscsi

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTarget measures reads by QEMU beside those of tgtd, from the same file: 4 KiB at scattered places, and 1 MiB after the other. Then it reads
// from a sparse LUN of 100 GiB, and reports the peak of this process's resident memory.
func BenchmarkTarget(b *testing.B) {
	file := filepath.Join(b.TempDir(), "disk.img")
	run := func(name string, args ...string) {
		b.Helper()
		if out, err := exec.CommandContext(b.Context(), name, args...).CombinedOutput(); err != nil {
			b.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	run("dd", "if=/dev/urandom", "of="+file, "bs=1M", "count=512")
	sparse := filepath.Join(b.TempDir(), "sparse.img")
	run("truncate", "--size=100G", sparse)
	target := &Target{Name: targetName}
	for number, path := range []string{1: file, 2: sparse} {
		if path == "" {
			continue
		}
		disk, err := OpenFile(path, false)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = disk.Close() }()
		if err := target.Add(uint16(number), LUN{Disk: disk}); err != nil {
			b.Fatal(err)
		}
	}
	ours := "iscsi://" + serve(b, target) + "/" + targetName + "/"
	theirs := "iscsi://" + tgtd(b, run, file) + "/" + targetName + "/1"
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string][]string{
		"4KiB": {"-c", "20000", "-d", "16", "-s", "4096", "-S", "1052672"},
		"1MiB": {"-c", "2000", "-d", "4", "-s", "1048576"},
	} {
		b.Run(name, func(b *testing.B) {
			var own, other []time.Duration
			read := func(from string) time.Duration {
				started := time.Now()
				run("qemu-img", append(append([]string{"bench", "-f", "raw", "-q"}, args...), from)...)
				return time.Since(started)
			}
			for b.Loop() {
				for range 5 {
					own, other = append(own, read(ours+"1")), append(other, read(theirs))
				}
			}
			slices.Sort(own)
			slices.Sort(other)
			b.ReportMetric(0, "ns/op") // it would be that of both
			b.ReportMetric(float64(other[len(other)/2])/float64(own[len(own)/2]), "speed/tgtd")
		})
	}
	b.Run("sparse", func(b *testing.B) {
		for b.Loop() {
			run("qemu-img", "bench", "-f", "raw", "-q", "-c", "4000", "-d", "16", "-s", "1048576", ours+"2")
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			b.Fatal(err)
		}
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		kib := 0
		if _, err := fmt.Sscanf(peak, "%d kB", &kib); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(kib)/1024, "MiB-resident")
	})
}

// tgtd serves a file as LUN 1, and returns its address.
func tgtd(b *testing.B, run func(name string, args ...string), file string) (address string) {
	b.Helper()
	if err := os.MkdirAll("/var/run/tgtd", 0o700); err != nil {
		b.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address = listener.Addr().String()
	_ = listener.Close()
	const control = "77"
	server := exec.CommandContext(b.Context(), "tgtd", "--foreground", "--control-port", control, "--iscsi", "portal="+address)
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGKILL) // it ignores others
		_ = server.Wait()
	})
	admin := []string{"--control-port", control, "--lld", "iscsi", "--tid", "1"}
	for started := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := exec.CommandContext(b.Context(), "tgtadm", append(admin[:4:4], "--mode", "target", "--op", "show")...).Run()
		if err == nil {
			break
		}
		if time.Since(started) > time.Minute {
			b.Fatal(err)
		}
	}
	run("tgtadm", append(slices.Clone(admin), "--mode", "target", "--op", "new", "--targetname", targetName)...)
	run("tgtadm", append(slices.Clone(admin), "--mode", "target", "--op", "bind", "--initiator-address", "ALL")...)
	run("tgtadm", append(slices.Clone(admin), "--mode", "logicalunit", "--op", "new", "--lun", "1", "--backing-store", file)...)
	return address
}
