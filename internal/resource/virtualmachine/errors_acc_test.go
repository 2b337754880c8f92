//go:build acc

package virtualmachine_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// message builds a regular expression of words that Terraform may have wrapped.
func message(parts ...string) *regexp.Regexp {
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(regexp.QuoteMeta(p), " ", `[\s│]+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, ".*"))
}

// handmade is a volume without a binding, for the given hosts.
func handmade(key, mode, bus, more string, hosts ...string) string {
	return fmt.Sprintf(`%s = {
      bus = %q
      %s
      volume = {
        capacity = null, copy_on_read = false
        images = [{
          uri         = "iscsi://127.0.0.1:3260/iqn.2026-01.io.example:%[1]s/1", format = "raw", servers = null, auth = null, options = null
          access_mode = %[4]q, hosts = ["%[5]s"], binding = null, instance_id = null
        }]
      }
    }`, key, bus, more, mode, strings.Join(hosts, `", "`))
}

// refused fails the test unless a plan has the wanted error for each file of a configuration, which has the name of its resource or of the
// provider's alias. Invalid configurations end a plan before anything is planned, so that a second one is made of the valid ones only.
func refused(t *testing.T, cli acctest.CLI, wanted map[string]*regexp.Regexp) {
	t.Helper()
	found := cli.PlanErrors()
	valid := 0
	for name := range wanted {
		if found[name] == "" {
			valid++
		} else if err := os.Remove(filepath.Join(cli.Dir, name+".tf")); err != nil {
			t.Fatal(err)
		}
	}
	if valid > 0 {
		maps.Copy(found, cli.PlanErrors())
	}
	acctest.ExpectErrors(t, found, wanted)
}

// Errors in the configuration are reported at plan, at the attribute, and nothing is changed.
func TestAccVirtualMachine_InvalidConfigurations(t *testing.T) {
	l := acctest.Lab(t)
	cli, wanted := acctest.NewCLI(t), map[string]*regexp.Regexp{}
	cli.Write("provider.tf", acctest.Provider(l, "bad"))
	for _, c := range []struct {
		name    string
		machine machine
		want    *regexp.Regexp
	}{
		{"unknown host", machine{host: "host-z"}, message("Unknown host", "host = ", "host-z", "host-a")},
		{
			"host not in the binding",
			machine{disks: []string{handmade("root", "write-exclusive", "virtio", "", "host-b")}},
			message("Host not in the binding", "host-b", "Add host-a to the hosts of the binding"),
		},
		{
			"duplicate boot order",
			machine{disks: []string{
				handmade("a", "write-exclusive", "virtio", "boot_order = 1", "host-a"),
				handmade("b", "write-exclusive", "virtio", "boot_order = 1", "host-a"),
			}},
			message("Duplicate boot order", "boot order 1", "Give each its own"),
		},
		{
			"bad key",
			machine{disks: []string{strings.Replace(handmade("mydisk", "write-exclusive", "virtio", "", "host-a"), "mydisk", `"my disk"`, 1)}},
			message("my disk", "must consist of letters, digits, _ and -"),
		},
		{
			"read-only SATA disk",
			machine{disks: []string{handmade("lib", "read-shared", "sata", "", "host-a")}},
			message("A device that can't be read-only", "Use a disk on virtio, scsi or usb"),
		},
		{
			"volume without images",
			machine{disks: []string{"root = { volume = { capacity = null, copy_on_read = false, images = [] } }"}},
			message("A volume without an image", "virtclaim_volume_binding"),
		},
		{"bad memory", machine{memory: "2 gigabytes"}, message("Invalid quantity", "512Mi")},
		{"bad bus", machine{disks: []string{handmade("a", "write-exclusive", "nvme", "", "host-a")}}, message("virtio", "scsi", "sata")},
		{"bad device", machine{disks: []string{handmade("a", "write-exclusive", "sata", `device = "tape"`, "host-a")}}, message("disk", "cdrom")},
		{
			"CD-ROM drive on virtio",
			machine{disks: []string{handmade("a", "read-shared", "virtio", `device = "cdrom"`, "host-a")}},
			message("No CD-ROM drive on virtio", "Leave the bus out"),
		},
		{
			"IDE on q35",
			machine{machineType: "q35", disks: []string{handmade("a", "read-shared", "ide", `device = "cdrom"`, "host-a")}},
			message("No IDE", "this machine (q35) has none"),
		},
		{
			"ephemeral CD-ROM drive",
			machine{disks: []string{handmade("a", "read-shared", "ide", "device = \"cdrom\"\nephemeral = true", "host-a")}},
			message("A drive can't be ephemeral", "Leave ephemeral out"),
		},
		{
			"floppy on q35",
			machine{machineType: "q35", disks: []string{`a = { device = "floppy" }`}},
			message("No floppy controller", "this machine (q35) has none"),
		},
		{"empty disk", machine{disks: []string{"a = {}"}}, message("A disk without a volume", "only a cdrom or a floppy may be empty")},
		{
			"long serial",
			machine{disks: []string{handmade("a", "write-exclusive", "virtio", `serial = "123456789012345678901"`, "host-a")}},
			message("A serial number that is too long", "21 characters; on virtio its guest would see 20"),
		},
		{
			"native IO with a cache",
			machine{disks: []string{handmade("a", "write-exclusive", "virtio", "io = \"native\"\ncache = \"writeback\"", "host-a")}},
			message("Native I/O needs a direct cache", `Add cache = "none"`),
		},
		{
			"machine type that the host has not",
			machine{machineType: "pc-i440fx-99"},
			message("The host can't emulate this", "host-a has no type", "pc, q35"),
		},
		{
			"processor model that the host has not",
			machine{more: `cpu = { vcpus = 1, model = "Nonsense" }`},
			message("Not supported by the host", `no processor model "Nonsense"`, "qemu64"),
		},
		{
			"processor mode that the host has not",
			machine{more: `cpu = { vcpus = 1, mode = "host-passthrough" }`},
			message("Not supported by the host", "host-model"),
		},
		{
			"another topology",
			machine{more: "cpu = { vcpus = 2, max_vcpus = 4, topology = { sockets = 1, cores = 2, threads = 1 } }"},
			message("The topology has 2 processors", "up to 4"),
		},
		{"model and mode", machine{more: `cpu = { vcpus = 1, mode = "host-model", model = "qemu64" }`}, message("A model of a mode that has none")},
		{"more than the maximum", machine{more: "cpu = { vcpus = 2, max_vcpus = 1 }\nmax_memory = \"127Mi\""}, message("processors than the maximum", "memory than the maximum")},
		{"too many processors", machine{more: "cpu = { vcpus = 300 }"}, message("Too many processors", "255")},
		{
			"multicast address",
			machine{more: `interfaces = { lan = { user = true, mac = "53:54:00:00:00:01" } }`},
			message("lan", "must be the address of one device"),
		},
		{
			"no address",
			machine{more: `interfaces = { lan = { user = true, mac = "5254.0000.0001" } }`},
			message("lan", "must be six bytes in hexadecimal digits"),
		},
		{
			"interface on two things",
			machine{more: `interfaces = { lan = { user = true, bridge = "br0" } }`},
			message("An interface is on one thing", "Set exactly one of them"),
		},
		{
			"boot order of a disk and an interface",
			machine{disks: []string{handmade("a", "write-exclusive", "virtio", "boot_order = 1", "host-a")}, more: `interfaces = { lan = { user = true, boot_order = 1 } }`},
			message("Duplicate boot order", "disk a", "interface lan"),
		},
		{"relative log", machine{log: "guest.log"}, message("must be an absolute path")},
	} {
		c.machine.name = strings.ReplaceAll(c.name, " ", "-")
		if c.machine.log == "" {
			c.machine.log = "/nowhere/guest.log"
		}
		wanted[c.machine.name] = c.want
		// Each has storage of its own, or the plan would say that two machines have the same.
		cli.Write(c.machine.name+".tf", strings.ReplaceAll(c.machine.hcl(l), "2026-01.io.example:", "2026-01.io.example:"+strings.ToLower(c.machine.name)+"-"))
	}
	refused(t, cli, wanted)
}

func TestAccVirtualMachine_SameStorageTwice(t *testing.T) {
	l := acctest.Lab(t)
	twice := machine{log: "/nowhere/guest.log", disks: []string{
		strings.ReplaceAll(handmade("a", "write-exclusive", "virtio", "", "host-a"), "example:a/1", "example:same/1"),
		strings.ReplaceAll(handmade("b", "read-shared", "virtio", "", "host-a"), "example:b/1", "EXAMPLE:same/1"),
	}}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "bad") + twice.hcl(l), PlanOnly: true,
			ExpectError: message("The same storage twice", "Disks a and b"),
		}},
	})
}

// A machine that can't be started leaves nothing: the leak checker checks the host afterwards.
func TestAccVirtualMachine_FailedStartIsReverted(t *testing.T) {
	l := acctest.Lab(t)
	for _, c := range []struct {
		name, owner string
		machine     machine
		want        *regexp.Regexp
	}{
		{
			"kernel that is not there", "start",
			machine{more: ""},
			message("could not be started", "host-a"),
		},
		{
			"storage that refuses", "start",
			machine{disks: []string{handmade("root", "write-exclusive", "virtio", "", "host-a")}},
			message("could not be started", "host-a", "iSCSI"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.machine.log = acctest.NewConsole(t).Path()
			config := acctest.Provider(l, c.owner) + c.machine.hcl(l)
			if len(c.machine.disks) == 0 {
				config = strings.ReplaceAll(config, l.Guest.Kernel, "/nowhere/vmlinux")
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps:                    []resource.TestStep{{Config: config, ExpectError: c.want}},
			})
		})
	}
}

// Errors that only an apply can find are reported before anything is created: the leak checker checks the host afterwards.
func TestAccVirtualMachine_UnsupportedByHost(t *testing.T) {
	l := acctest.Lab(t)
	config := strings.Replace(acctest.Provider(l, "bad")+machine{log: "/nowhere/guest.log", more: "running = false"}.hcl(l),
		`type = "pc"`, "type = terraform_data.machine.output", 1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config:      config + "resource \"terraform_data\" \"machine\" {\n  input = \"pc-q35-99\"\n}\n",
			ExpectError: message("The host can't emulate this", "pc-q35-99"),
		}},
	})
}

// Errors in the provider's configuration are reported at the attribute.
func TestAccProvider_InvalidConfigurations(t *testing.T) {
	l := acctest.Lab(t)
	cli, wanted := acctest.NewCLI(t), map[string]*regexp.Regexp{}
	for _, c := range []struct {
		name, provider string
		want           *regexp.Regexp
	}{
		{
			"kubeconfig that is not there",
			`kubernetes = { config_path = "/nowhere/kubeconfig" }
			hosts = { host-a = { uri = "qemu:///system" } }`,
			message("Unusable Kubernetes configuration", "config_path", "/nowhere/kubeconfig"),
		},
		{
			"context that is not there",
			fmt.Sprintf(`kubernetes = { config_path = %q, config_context = "nobody" }
			hosts = { host-a = { uri = "qemu:///system" } }`, l.Cluster.Kubeconfig),
			message("Unusable Kubernetes configuration", "config_context", "nobody"),
		},
		{
			"URI that is none", `hosts = { host-a = { uri = "vbox:///session" } }`,
			message("Invalid libvirt URI", "vbox"),
		},
		{"no host", `hosts = {}`, message("Unknown host", "the provider has no hosts, so there is no host")},
	} {
		m := machine{name: strings.ReplaceAll(c.name, " ", "-"), log: "/nowhere/guest.log"}
		m.more = "provider = virtclaim." + m.name
		wanted[m.name] = c.want
		cli.Write(m.name+".tf", fmt.Sprintf("provider \"virtclaim\" {\n  alias = %q\n  %s\n}\n", m.name, c.provider)+m.hcl(l))
	}
	refused(t, cli, wanted)

	// Whether a host refuses the connection shows when something is created there.
	apply := acctest.NewCLI(t)
	apply.Write("main.tf", `provider "virtclaim" { hosts = { host-a = { uri = "qemu+tcp://127.0.0.1:1/system" } } }`+machine{log: "/nowhere/guest.log"}.hcl(l))
	if out, err := apply.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("host-a", "127.0.0.1:1", "refused").MatchString(out) {
		t.Errorf("a host that refuses the connection: %v\n%s", err, out)
	}
}
