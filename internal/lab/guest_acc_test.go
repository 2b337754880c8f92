//go:build acc

package lab

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const lunSize = 8 << 20

// guest is a domain that boots the lab's guest.
type guest struct {
	name, disk, cmdline, log string
	// serial is the type of its serial port; empty means null.
	serial string
}

func (g guest) xml(h *Host) string {
	return fmt.Sprintf(`<domain type='qemu'>
  <name>%s</name>
  <memory unit='MiB'>128</memory>
  <os><type arch='x86_64' machine='pc'>hvm</type>
    <kernel>%s</kernel><initrd>%s</initrd><cmdline>%s %s</cmdline></os>
  <features><acpi/></features>
  <devices>%s
    <serial type='%s'><log file='%s' append='off'/></serial></devices>
</domain>`, g.name, h.Guest.Kernel, h.Guest.Initrd, h.Guest.Parameters, g.cmdline, g.disk, cmp.Or(g.serial, "null"), filepath.Join(h.Consoles, filepath.Base(g.log)))
}

// guestLog creates the test's console on a host, and returns its path on this machine.
func guestLog(t *testing.T, h *Host) string {
	t.Helper()
	_, here, err := h.AddConsole(strings.ReplaceAll(t.Name(), "/", "-"))
	if err != nil {
		t.Fatal(err)
	}
	return here
}

// writeFile creates a file that is removed with the test.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func iscsiDisk(l *Lab, lun LUN, auth string) string {
	host, port, _ := strings.Cut(l.Target.Portal, ":")
	return fmt.Sprintf(`<disk type='network' device='disk'>
  <driver name='qemu' type='raw' cache='none'/>
  <source protocol='iscsi' name='%s/%d'><host name='%s' port='%s'/>%s</source>
  <target dev='vda' bus='virtio'/>
</disk>`, lun.IQN, lun.Number, host, port, auth)
}

func virsh(t *testing.T, h *Host, args ...string) string {
	t.Helper()
	out, err := h.Virsh(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// defineSecret defines a secret with the credentials of the iSCSI server on a host, and returns the element that names it.
func defineSecret(t *testing.T, l *Lab, h *Host) (id, auth string) {
	t.Helper()
	password := base64.StdEncoding.EncodeToString([]byte(l.Target.Password))
	id = setSecret(t, h, "<usage type='iscsi'><target>"+l.Target.Username+"</target></usage>", password)
	return id, fmt.Sprintf(`<auth username='%s'><secret type='iscsi' uuid='%s'/></auth>`, l.Target.Username, id)
}

// setSecret creates a secret on a host; the value is in Base64.
func setSecret(t *testing.T, h *Host, usage, value string) (id string) {
	t.Helper()
	id = uuid.NewString()
	virsh(t, h, "secret-define", writeFile(t, "secret.xml", "<secret private='yes'><uuid>"+id+"</uuid>"+usage+"</secret>"))
	virsh(t, h, "secret-set-value", id, value)
	return id
}

func addLUN(t *testing.T, l *Lab, spec LUNSpec) LUN {
	t.Helper()
	lun, err := l.Target.AddLUN(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return lun
}

// boot starts a guest and waits until it has reported that it is ready.
func boot(t *testing.T, h *Host, g guest) {
	t.Helper()
	if err := h.DefineXML(t.Context(), g.xml(h)); err != nil {
		t.Fatal(err)
	}
	virsh(t, h, "start", g.name)
	await(t, g.name+" is ready", func() bool {
		text, _ := os.ReadFile(g.log)
		return strings.Contains(string(text), "READY")
	})
}

func storedAt(t *testing.T, path string, offset int64, n int) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAccGuest_BootsFromISCSIWithPassword(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	if name := strings.TrimSpace(virsh(t, h, "hostname")); name != "host-a" {
		t.Errorf("the host calls itself %s", name)
	}
	lun := addLUN(t, l, LUNSpec{Size: lunSize, Content: []byte("content"), CHAP: true})
	log := guestLog(t, h)
	without := guest{name: "without", disk: iscsiDisk(l, lun, ""), log: log}
	if err := h.DefineXML(t.Context(), without.xml(h)); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Virsh(t.Context(), "start", "without"); err == nil || !strings.Contains(out, "Authentication") {
		t.Errorf("a guest without credentials got the LUN, or failed at something else: %v", err)
	}
	id, auth := defineSecret(t, l, h)
	boot(t, h, guest{
		name: "web", disk: iscsiDisk(l, lun, auth), log: log, cmdline: "virtclaim.disks=1 virtclaim.write=vda:from-the-guest",
	})
	text, _ := os.ReadFile(log)
	if want := fmt.Sprintf("DISK vda bytes=%d ro=0 serial=- first=content", lunSize); !strings.Contains(string(text), want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	if got := storedAt(t, lun.Path, 4096, 14); got != "from-the-guest" {
		t.Errorf("the backing file has %q", got)
	}
	started := time.Now()
	virsh(t, h, "destroy", "web")
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("destroy took %s: QEMU was left a zombie", took)
	}
	for _, args := range [][]string{{"undefine", "web"}, {"undefine", "without"}, {"secret-undefine", id}} {
		virsh(t, h, args...)
	}
	if err := l.Target.RemoveLUN(t.Context(), lun); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(lun.Path); !os.IsNotExist(err) {
		t.Errorf("the backing file is left (%v)", err)
	}
}

func TestAccGuest_SurvivesLibvirtd(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-b"]
	boot(t, h, guest{name: "db", log: guestLog(t, h)})
	for name, end := range map[string]func() error{
		"stop": func() error { return h.Stop(t.Context()) },
		"kill": func() error { return h.Kill(t.Context()) },
	} {
		id, uuid := virsh(t, h, "domid", "db"), virsh(t, h, "capabilities")
		if err := end(); err != nil {
			t.Fatal(name, err)
		}
		if _, err := h.Virsh(t.Context(), "list"); err == nil {
			t.Fatal(name, "libvirtd still answers")
		}
		if _, err := l.Snapshot(t.Context()); err == nil {
			t.Error(name, "a snapshot does not miss the host")
		}
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(name, err)
		}
		if got := virsh(t, h, "domid", "db"); got != id || virsh(t, h, "domstate", "db") != "running\n\n" {
			t.Errorf("%s: the guest was %s, is %s, state %s", name, id, got, virsh(t, h, "domstate", "db"))
		}
		if virsh(t, h, "capabilities") != uuid {
			t.Error(name, "it is not the same host any more")
		}
	}
	virsh(t, h, "destroy", "db")
	virsh(t, h, "undefine", "db")
}
