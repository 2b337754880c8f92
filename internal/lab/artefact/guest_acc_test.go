//go:build acc

package artefact

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diskImage creates a raw image of 1 MiB that begins with content.
func diskImage(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	return path
}

func guestImage(t *testing.T) Image {
	t.Helper()
	image, err := Guest(t.Context(), realCache(t), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestAccGuest_Console(t *testing.T) {
	image := guestImage(t)
	for _, machine := range []string{"pc", "q35"} {
		t.Run(machine, func(t *testing.T) { testGuestOn(t, image, machine) })
	}
}

func testGuestOn(t *testing.T, image Image, machine string) {
	t.Helper()
	virtio := diskImage(t, "golden \x01\xff image, longer than 32 bytes")
	readOnly := diskImage(t, "read-only")
	scsi := diskImage(t, "SCSI")
	sata := diskImage(t, "SATA")
	script := base64.StdEncoding.EncodeToString([]byte("echo from the script\nexit 3\n"))
	start := time.Now()
	vm := boot(t, image, machine,
		"virtclaim.disks=4 virtclaim.write=vda:virtio virtclaim.write=vdb:never virtclaim.write=sda:scsi=1:2 "+
			"virtclaim.write=vdz:never virtclaim.nics=1 virtclaim.dhcp=eth0 virtclaim.run="+script,
		"-drive", "if=none,id=virtio,format=raw,file="+virtio, "-device", "virtio-blk-pci,drive=virtio,serial=one",
		"-drive", "if=none,id=ro,format=raw,readonly=on,file="+readOnly, "-device", "virtio-blk-pci,drive=ro",
		"-drive", "if=none,id=scsi,format=raw,file="+scsi,
		"-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=scsi,serial=two",
		"-drive", "if=none,id=sata,format=raw,file="+sata, "-device", "ide-hd,drive=sata,serial=number 3",
		"-nic", "user,mac=52:54:00:00:00:0a,model="+map[string]string{"pc": "e1000", "q35": "virtio-net-pci"}[machine],
	)
	got := vm.until(t, "READY")
	t.Logf("ready after %v", time.Since(start).Round(10*time.Millisecond))

	first := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "BOOT id=") })
	want := []string{
		"DISK sda bytes=1048576 ro=0 serial=two first=SCSI............................",
		"DISK sdb bytes=1048576 ro=0 serial=number_3 first=SATA............................",
		"DISK vda bytes=1048576 ro=0 serial=one first=golden .. image, longer than 32 ",
		"DISK vdb bytes=1048576 ro=1 serial=- first=read-only.......................",
		"NIC eth0 mac=52:54:00:00:00:0a link=1 address=10.0.2.15/24",
		"WROTE vda offset=4096 text=virtio",
		"FAILED vdb dd: error writing '/dev/vdb': Operation not permitted",
		"WROTE sda offset=4096 text=scsi=1:2",
		"FAILED vdz no such disk",
		"from the script",
		"RAN rc=3",
	}
	if diff := cmp.Diff(want, got[first+1:]); diff != "" {
		t.Errorf("lines after BOOT (-want +got):\n%s", diff)
	}
	if got := vm.run(t, "if; exit; fi\nblockdev --getsize64 /dev/vda"); !slices.Contains(got, "RC=2") {
		t.Errorf("a command with a syntax error printed %q, want RC=2 and no end of the guest", got)
	}

	vm.pressPowerButton(t)
	if err := within(t, 5*time.Second, "power-off", vm.ended); err != nil {
		t.Errorf("QEMU ended with %v", err)
	}
	for path, want := range map[string]string{virtio: "virtio\x00", scsi: "scsi=1:2\x00", readOnly: "\x00", sata: "\x00"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(content[4096:][:len(want)]); got != want {
			t.Errorf("%s has %q at byte 4096, want %q", path, got, want)
		}
	}
}

func TestAccGuest_PowerButton(t *testing.T) {
	vm := boot(t, guestImage(t), "q35", "")
	vm.until(t, "READY")
	vm.pressPowerButton(t)
	if err := within(t, 5*time.Second, "power-off", vm.ended); err != nil {
		t.Errorf("QEMU ended with %v", err)
	}
}

func TestAccGuest_PowersOff(t *testing.T) {
	vm := boot(t, guestImage(t), "pc", "virtclaim.end=off")
	vm.until(t, "READY")
	if err := within(t, 5*time.Second, "power-off", vm.ended); err != nil {
		t.Errorf("QEMU ended with %v", err)
	}
}
