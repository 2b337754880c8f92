//go:build acc

package lab

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// putISO creates an ISO image in a pool, and returns its path on the host.
func putISO(t *testing.T, h *Host, name, label, content string) string {
	t.Helper()
	iso, err := image.ISO(label, image.ISOFile{Name: "user-data", Content: []byte(content)})
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(h.Dir, "pools", "ssd", name)
	if err := os.WriteFile(here, iso, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(here) })
	return filepath.Join(h.Pools, "ssd", name)
}

func TestAccShell_ReadsInsertedMedium(t *testing.T) {
	l := sharedLab(t)
	defaultConfig, err := l.DefaultConfigHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Host{l.Hosts["host-a"], defaultConfig} {
		t.Run(h.Name, func(t *testing.T) { testMediumIsChanged(t, h) })
	}
}

func testMediumIsChanged(t *testing.T, h *Host) {
	t.Helper()
	first, second := putISO(t, h, "first.iso", "cidata", "first\n"), putISO(t, h, "second.iso", "cidata", "second\n")
	g := guest{name: "cdrom", log: guestLog(t, h), cmdline: "virtclaim.cdroms=1 virtclaim.read=sr0"}
	g.disk = "<disk type='file' device='cdrom'><source file='" + first + "'/><target dev='hda' bus='ide'/><readonly/></disk>"
	g.serial = "pty"
	boot(t, h, g)
	text, _ := os.ReadFile(g.log)
	if want := "FILE sr0 user-data " + base64.StdEncoding.EncodeToString([]byte("first\n")); !strings.Contains(string(text), want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	virsh(t, h, "change-media", g.name, "hda", second, "--update", "--live")
	got, err := h.Shell(t.Context(), g.name, "report_cdrom sr0; read_cdrom sr0")
	want := fmt.Sprintf("CDROM sr0 bytes=%d ro=1 label=cidata\nFILE sr0 user-data %s\n", 26*2048, base64.StdEncoding.EncodeToString([]byte("second\n")))
	if err != nil || got != want {
		t.Errorf("after the change the guest says %q, %v, want %q", got, err, want)
	}
	if got, err := h.Shell(t.Context(), g.name, "seq 1 2000; (exit 3)"); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.HasSuffix(got, "\n1999\n2000\n") {
		t.Errorf("a command that fails prints %.100q..., %v", got, err)
	}
	virsh(t, h, "destroy", g.name)
	virsh(t, h, "undefine", g.name)
	if _, err := h.Shell(t.Context(), g.name, "true"); err == nil {
		t.Error("a guest that is not there runs a command")
	}
}
