//go:build acc && linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// BenchmarkBoot measures the time from power-on to the program of an image, and compares it with that from power-on to the first line of the lab's guest,
// whose init is a script in its RAM disk: the same kernel, hardware and parameters, in turn.
func BenchmarkBoot(b *testing.B) {
	const turns = 5
	a, folder := makeArtefacts(b), b.TempDir()
	other, err := lab.Guest(b.Context(), b.Logf)
	if err != nil {
		b.Fatal(err)
	}
	root, file := filepath.Join(folder, "root.img"), filepath.Join(folder, "config.json")
	guest{}.makeRoot(b, a, folder, root)
	text, err := guestinit.Config{Root: "root", Arguments: []string{"/probe", "await"}, Interfaces: []guestinit.Interface{{
		MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.2.15/24"}, // DHCP is QEMU's time, and not ours
	}}}.Encode()
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	var program, first time.Duration
	for b.Loop() {
		for range turns {
			program += untilLine(b, hardware(a.kernel, a.initrd, root, file), "probe is ready")
			first += untilLine(b, hardware(a.kernel, other.Initrd, root, file), "BOOT ")
		}
	}
	b.ReportMetric(program.Seconds()/float64(turns), "program-s")
	b.ReportMetric(first.Seconds()/float64(turns), "first-line-s")
	b.ReportMetric(program.Seconds()/first.Seconds(), "program/first-line")
	b.ReportMetric(0, "ns/op") // it would be that of all turns
}

// untilLine is the time from a machine's start to a line on its console, after which its power is cut.
func untilLine(b *testing.B, arguments []string, part string) time.Duration {
	b.Helper()
	qemu := exec.CommandContext(b.Context(), "qemu-system-x86_64", arguments...)
	output, err := qemu.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := qemu.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = qemu.Process.Kill()
		_ = qemu.Wait()
	}()
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if strings.Contains(lines.Text(), part) {
			return time.Since(began)
		}
	}
	b.Fatalf("the console never says %q", part)
	return 0
}
