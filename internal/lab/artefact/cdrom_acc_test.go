//go:build acc

package artefact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// isoImage creates an ISO image with a file user-data.
func isoImage(t *testing.T, label, userData string) (path string, size int) {
	t.Helper()
	content, err := image.ISO(label, image.ISOFile{Name: "meta-data", Content: []byte("instance-id: web\n")},
		image.ISOFile{Name: "user-data", Content: []byte(userData)})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "seed.iso")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, len(content)
}

func onCDROM(name, file, content string) string {
	return fmt.Sprintf("FILE %s %s %s", name, file, base64.StdEncoding.EncodeToString([]byte(content)))
}

func TestAccGuest_ReadsCDROMs(t *testing.T) {
	guest := guestImage(t)
	for machine, cdrom := range map[string][]string{
		"pc IDE":   {"-device", "ide-cd,drive=cd,id=cdrom"},
		"q35 SATA": {"-device", "ide-cd,drive=cd,id=cdrom"},
		"q35 SCSI": {"-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=cd,id=cdrom"},
	} {
		t.Run(machine, func(t *testing.T) { testGuestReadsCDROM(t, guest, strings.Fields(machine)[0], cdrom) })
	}
}

func testGuestReadsCDROM(t *testing.T, guest Image, machine string, cdrom []string) {
	t.Helper()
	first, firstSize := isoImage(t, "cidata", "#cloud-config\nhostname: w\xfcb\n")
	second, secondSize := isoImage(t, "CONFIG 2", strings.Repeat("changed ", 1000))
	script := base64.StdEncoding.EncodeToString([]byte("read_cdrom sr0 | head -n 1\nexit 3\n"))
	vm := boot(t, guest, machine, "virtclaim.cdroms=1 virtclaim.read=sr0 virtclaim.read=sr7 virtclaim.run="+script,
		append([]string{"-drive", "if=none,id=cd,format=raw,readonly=on,file=" + first}, cdrom...)...)
	got := vm.until(t, "READY")
	boot := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "BOOT id=") })
	want := []string{
		fmt.Sprintf("CDROM sr0 bytes=%d ro=1 label=cidata", firstSize),
		onCDROM("sr0", "meta-data", "instance-id: web\n"),
		onCDROM("sr0", "user-data", "#cloud-config\nhostname: w\xfcb\n"),
		"FAILED sr7 no medium",
		onCDROM("sr0", "meta-data", "instance-id: web\n"),
		"RAN rc=3",
	}
	if diff := cmp.Diff(want, got[boot+1:]); diff != "" {
		t.Errorf("lines after BOOT (-want +got):\n%s", diff)
	}

	vm.sendLine(t, "eject cd")
	if got := vm.run(t, "report_cdrom sr0"); !slices.Equal(got, []string{"CDROM sr0 empty"}) {
		t.Errorf("the empty drive is told as %q", got)
	}
	vm.sendLine(t, "change cd "+second+" raw")
	want = []string{
		fmt.Sprintf("CDROM sr0 bytes=%d ro=1 label=CONFIG_2", secondSize),
		onCDROM("sr0", "meta-data", "instance-id: web\n"),
		onCDROM("sr0", "user-data", strings.Repeat("changed ", 1000)),
	}
	if diff := cmp.Diff(want, vm.run(t, "report_cdrom sr0; read_cdrom sr0")); diff != "" {
		t.Errorf("lines after the change of the medium (-want +got):\n%s", diff)
	}
	vm.sendLine(t, "change cd "+first+" raw")
	if got := vm.run(t, "read_cdrom sr0"); len(got) != 2 || got[1] != onCDROM("sr0", "user-data", "#cloud-config\nhostname: w\xfcb\n") {
		t.Errorf("after the next change the guest reads %q", got)
	}
}

// sendLine has QEMU's monitor run a command, and waits for its end: until the
// monitor answers the next one.
func (vm *virtualMachine) sendLine(t *testing.T, command string) {
	t.Helper()
	if err := vm.monitor.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(vm.monitor, command+"\ninfo uuid\n"); err != nil {
		t.Fatal(err)
	}
	var said []byte
	for part := make([]byte, 1000); !bytes.Contains(said, []byte("0000-0000")); {
		n, err := vm.monitor.Read(part)
		if err != nil {
			t.Fatalf("QEMU's monitor does not answer %q: %v\n%s", command, err, said)
		}
		said = append(said, part[:n]...)
	}
}
