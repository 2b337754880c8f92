//go:build acc

package virtualmachine_test

import (
	"crypto/des"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// inventory prints the optional devices that a guest finds, and writes to its virtio console.
const inventory = `
for module in virtio_rng 9pnet_virtio 9p virtiofs i6300esb; do load $module; done
echo "RNG $(cat /sys/class/misc/hw_random/rng_current)"
echo "WATCHDOG $(ls /dev/watchdog0 2>/dev/null)"
mkdir /share
mount -t 9p -o trans=virtio,version=9p2000.L,ro files /share && echo "SHARED $(cat /share/hello)"
mkdir /fast
mount -t virtiofs fast /fast && echo "FAST $(cat /fast/hello)"
touch /share/mine 2>/dev/null || echo "SHARED read-only"
echo "PCI $(cat /sys/bus/pci/devices/*/device | tr '\n' ' ')"
[ -e /dev/hvc0 ] && echo "from the virtio console" >/dev/hvc0
`

// Devices that can't be plugged into a running guest are added to its persistent definition, with a warning, and the guest has them after
// its next start; the same holds for their removal. The password of a display is changed at once, and is only in that definition.
func TestAccVirtualMachine_Devices(t *testing.T) {
	l := acctest.Lab(t)
	console, virtio := acctest.NewConsole(t), acctest.NewConsole(t)
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "hello"), []byte("hello from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	devices := fmt.Sprintf(`
  graphics    = { type = "vnc", password_wo = var.password, password_wo_version = 1 }
  video       = { model = "virtio" }
  rng         = {}
  watchdog    = { action = "poweroff" }
  console     = { log_file = %[1]q }
  filesystems = { files = { source = %[2]q, driver = "9p", read_only = true }, fast = { source = %[2]q } }
  devices_xml = <<-EOT
    <sound model='ac97'/>
    <input type="keyboard" bus="virtio"/>
  EOT`, virtio.Path(), shared)
	passwords := []string{"xa7Qp2Lm", "w9Kd3Vbn"}
	cli := acctest.NewCLI(t, "TF_LOG=TRACE", "TF_LOG_PATH=trace.log", "TF_VAR_password="+passwords[0])
	write := func(more string) {
		cli.Write("main.tf", acctest.Provider(l, "devices")+`
variable "password" {
  type      = string
  ephemeral = true
}
output "endpoints" {
  value = virtclaim_virtual_machine.web.endpoints
}
`+machine{cmdline: "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(inventory)), log: console.Path(), more: more + "\n  force_stop = true"}.hcl(l))
	}
	everything := map[string]string{}
	apply := func(what string, parts ...string) {
		t.Helper()
		out := cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, strings.Join(strings.Fields(out), " "), parts...)
		everything[what] = out
		everything["a plan after "+what] = cli.Must("plan", "-no-color", "-detailed-exitcode") // an error if there are changes
	}
	restart := func(n int) {
		t.Helper()
		if _, err := l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"); err != nil {
			t.Fatal(err)
		}
		apply("a start")
		console.AwaitN(t, "READY", n)
	}
	endpoints := func() (is struct{ Serial, Console, Graphics *string }) {
		t.Helper()
		if err := json.Unmarshal([]byte(cli.Must("output", "-json", "endpoints")), &is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	asks := func(right, wrong string) {
		t.Helper()
		for password, want := range map[string]bool{right: true, wrong: false} {
			if got, err := letIn(t, *endpoints().Graphics, password); err != nil || got != want {
				t.Errorf("the display lets the password %s in: %v (%v), want %v", password, got, err, want)
			}
		}
	}

	write("")
	apply("creation")
	console.Await(t, "READY")
	write(devices)
	const next = "can't be given this while it does: graphics, video, rng, watchdog, console, filesystems, devices_xml."
	apply("adding devices", next)
	acctest.Contains(t, strings.Join(strings.Fields(everything["a plan after adding devices"]), " "), next, "No changes.")
	if is := endpoints(); is.Serial == nil || is.Console != nil || is.Graphics != nil {
		t.Errorf("what the guest has not yet is to be seen at %+v", is)
	}
	restart(2)
	if strings.Contains(everything["a plan after a start"], "next start") {
		t.Error("what the guest has is said to wait for the next start")
	}
	terminal, err := l.Hosts["host-a"].Virsh(t.Context(), "ttyconsole", "web")
	if is := endpoints(); err != nil || *is.Serial != strings.TrimSpace(terminal) || *is.Console == *is.Serial || !strings.HasPrefix(*is.Console, "/dev/pts/") {
		t.Errorf("the ports are to be seen at %s and %s; libvirt says %s (%v)", *is.Serial, *is.Console, terminal, err)
	}
	acctest.Contains(t, console.Text(t), "RNG virtio_rng", "WATCHDOG /dev/watchdog0", "SHARED hello from the host", "SHARED read-only", "FAST hello from the host", " 0x2415 ", " 0x1052 ", " 0x1050 ")
	virtio.Await(t, "from the virtio console")
	asks(passwords[0], passwords[1])

	cli = cli.With("TF_VAR_password=" + passwords[1])
	write(strings.Replace(devices, "password_wo_version = 1", "password_wo_version = 2", 1))
	apply("another password")
	if strings.Contains(everything["another password"], "next start") {
		t.Error("another password is said to take effect at the next start")
	}
	asks(passwords[1], passwords[0])

	// A device that was configured as XML is drift if it is missing, and is added again.
	if _, err := l.Hosts["host-a"].Virsh(t.Context(), "detach-device-alias", "web", "ua-xml-1", "--config"); err != nil {
		t.Fatal(err)
	}
	apply("drift", "0 added, 1 changed")
	stored, err := l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "--inactive", "--security-info", "web")
	if err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, stored, "ua-xml-0", "ua-xml-1", "passwd='"+passwords[1]+"'")

	write("")
	apply("removal of devices", next)
	if stored, err = l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "--inactive", "web"); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"<graphics", "<rng", "<watchdog", "<filesystem", "<sound", "bus='virtio'", "target type='virtio'"} {
		if strings.Contains(stored, gone) {
			t.Errorf("%s is still in\n%s", gone, stored)
		}
	}
	everything["destroy"] = cli.Must("destroy", "-auto-approve", "-no-color")
	for _, password := range passwords {
		nowhere(t, cli, password, everything)
	}
}

// letIn runs a VNC client's handshake (RFC 6143) up to the server's result of the authentication.
func letIn(t *testing.T, display, password string) (bool, error) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(display, "vnc://"))
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	const version = "RFB 003.008\n"
	read := func(n int) []byte {
		b := make([]byte, n)
		_, failed := io.ReadFull(conn, b)
		err = errors.Join(err, failed)
		return b
	}
	write := func(b []byte) {
		_, failed := conn.Write(b)
		err = errors.Join(err, failed)
	}
	read(len(version))
	write([]byte(version))
	if kinds := read(int(read(1)[0])); string(kinds) != "\x02" {
		return false, fmt.Errorf("the display offers %v, not only a password (2): %w", kinds, err)
	}
	write([]byte{2})
	challenge, key := read(16), make([]byte, 8)
	for i, c := range []byte(password) {
		key[i] = bits.Reverse8(c)
	}
	cipher, _ := des.NewCipher(key)
	cipher.Encrypt(challenge[:8], challenge[:8])
	cipher.Encrypt(challenge[8:], challenge[8:])
	write(challenge)
	return read(4)[3] == 0, err
}
