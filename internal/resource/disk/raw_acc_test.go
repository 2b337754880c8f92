package disk_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What a guest writes to a raw disk may look like a qcow2 image, even one over a file of the host; or it is encrypted.
func TestAccARawDiskStaysRawWhateverItsGuestWrites(t *testing.T) {
	for name, c := range map[string]struct {
		image []string
		// grows is the error of growing it while no machine runs.
		grows string
	}{
		"qcow2": {[]string{"-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/passwd"}, "libvirt takes it for qcow2"},
		"LUKS":  {[]string{"-f", "luks", "--object", "secret,id=s,data=secret", "-o", "key-secret=s,iter-time=10,hash-alg=sha512"}, "encryption"},
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			console := acctest.NewConsole(t)
			config := func(size, running string) string {
				return acctest.Provider(l, "disks") + disk("root", fmt.Sprintf("format = \"raw\"\n size = %q", size)) +
					vm(l, console, "", "running = "+running, on("root", theDisk, ""))
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{Config: config("64Mi", "false")},
					{
						PreConfig: func() { write(t, l, "root", c.image) },
						Config:    config("64Mi", "false"), PlanOnly: true,
					},
					{Config: config("96Mi", "false"), ExpectError: message(c.grows)},
					{
						Config: config("64Mi", "true"),
						Check: func(*terraform.State) error {
							acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=67108864")
							return nil
						},
					},
				},
			})
		})
	}
}

// writeHead writes a small qcow2 image over the beginning of a disk.
func writeHead(t *testing.T, l *lab.Lab, name string, options ...string) {
	t.Helper()
	write(t, l, name, append([]string{"-f", "qcow2"}, options...))
}

// write writes a small image over the beginning of a disk, which libvirt sees at the next start of its pool.
func write(t *testing.T, l *lab.Lab, name string, image []string) {
	t.Helper()
	inner := filepath.Join(t.TempDir(), "inner")
	run := func(program string, args ...string) error {
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %v: %w: %s", program, args, err, out)
		}
		return nil
	}
	create := append(append([]string{"create", "-q"}, image...), inner, "16M")
	err := run("qemu-img", create...)
	// Before it makes a LUKS image QEMU measures how fast the hash is, and gives up where it took no whole tick of the CPU's clock.
	for range 20 {
		if err == nil {
			break
		}
		err = run("qemu-img", create...)
	}
	if err == nil {
		err = run("dd", "if="+inner, "of="+file(l, name), "conv=notrunc", "status=none")
	}
	if err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
}
