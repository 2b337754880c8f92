//go:build acc

package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// fromGuest is the text that guests write, 4,096 bytes from the start.
const fromGuest = "from-the-guest"

// networkDisk is a domain's first disk. Its source is given without the host, which is set from the server's host:port.
func networkDisk(t *testing.T, source, server, more string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`<disk type='network' device='disk'>
  <driver name='qemu' type='raw' cache='none'/>
  <source %s><host name='%s' port='%s'/>%s</source>
  <target dev='vda' bus='virtio'/>
</disk>`, source, host, port, more)
}

// guestUses boots a guest with a disk on a host. It checks that the guest reads the content, and has it write unless the disk is read-only.
// Then it calls meanwhile, and ends the guest.
func guestUses(t *testing.T, h *Host, disk, content string, meanwhile func()) {
	t.Helper()
	readOnly, write := strings.Contains(disk, "<readonly/>"), "virtclaim.write=vda:"+fromGuest
	if readOnly {
		write = ""
	}
	g := guest{name: "storage", disk: disk, log: guestLog(t, h), cmdline: "virtclaim.disks=1 " + write}
	boot(t, h, g)
	text, _ := os.ReadFile(g.log)
	if want := fmt.Sprintf("DISK vda bytes=%d", lunSize); !strings.Contains(string(text), want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	if !strings.Contains(string(text), "first="+content) {
		t.Errorf("the guest does not read %q:\n%s", content, text)
	}
	if wrote := strings.Contains(string(text), "WROTE vda"); wrote == readOnly {
		t.Errorf("read-only is %t, but:\n%s", readOnly, text)
	}
	meanwhile()
	virsh(t, h, "destroy", g.name)
	virsh(t, h, "undefine", g.name)
}

// run runs a program and returns its output, also with an error.
func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}
