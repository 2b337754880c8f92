//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A guest may write a qcow2 image to its raw disk, even one with a file of the host as backing file, or an encrypted image.
func TestAccDisk_RawStaysRaw(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, image := range map[string][]string{
		"qcow2": {"-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/passwd"},
		"split": {"-f", "qcow2", "-o", "data_file=" + victim + ",data_file_raw=on"},
		"LUKS":  {"-f", "luks", "--object", "secret,id=s,data=secret", "-o", "key-secret=s,iter-time=10,hash-alg=sha512"},
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
						PreConfig: func() { write(t, l, "root", image) },
						Config:    config("64Mi", "false"), PlanOnly: true,
					},
					{PreConfig: func() { _ = os.Truncate(victim, 0) }, Config: config("96Mi", "false")},
					{
						Config: config("96Mi", "true"),
						Check: func(*terraform.State) error {
							acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=100663296")
							if info, err := os.Stat(victim); err != nil || info.Size() > 0 {
								t.Errorf("the file that the head names was written to: %v, %v", info, err)
							}
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
	// Before it creates a LUKS image QEMU measures the speed of the hash, and fails if it took less than one tick of the CPU's clock.
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

// A backup that was restored as an image, and not as the raw file that the disk is, is neither grown nor attached to a guest.
func TestAccDisk_RawRestoredAsImage(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	write := func(running string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", "format = \"raw\"\n size = \"64Mi\"")+
			vm(l, console, "", "running = "+running, on("root", theDisk, "")))
	}
	write("false")
	cli.Must("apply", "-auto-approve", "-no-color")
	raw, kept := file(l, "root"), filepath.Join(t.TempDir(), "backup")
	qemuImg(t, "convert", "-f", "raw", "-O", "qcow2", raw, kept)
	acctest.Must(exec.CommandContext(t.Context(), "cp", kept, raw).CombinedOutput())(t)
	before := acctest.Must(os.Stat(raw))(t).Size()
	virsh(t, l, "pool-refresh", "ssd")
	write("true")
	for _, args := range [][]string{nil, {"-refresh=false"}} {
		out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		if err == nil || !message("bytes, and was recorded with 67108864 bytes").MatchString(out) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if is := acctest.Must(os.Stat(raw))(t).Size(); is != before {
		t.Errorf("the file has %d bytes by now", is)
	}
	qemuImg(t, "convert", "-f", "qcow2", "-O", "raw", kept, raw)
	virsh(t, l, "pool-refresh", "ssd")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=67108864")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
