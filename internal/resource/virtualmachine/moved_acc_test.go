//go:build acc

package virtualmachine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// formerFolder has a state of dmacvicar/libvirt 0.8.3, and the domains that it defined, with the folder formerPool.
const (
	formerFolder = "testdata/libvirt-0.8.3"
	formerPool   = "/var/lib/libvirt/images"
)

// formerly has a host's objects be as dmacvicar/libvirt has left them, and returns a folder with its state, in which Terraform runs.
func formerly(t *testing.T, h *lab.Host) acctest.CLI {
	t.Helper()
	folder := filepath.Join(h.Dir, "pools", "ssd")
	virsh := func(args ...string) {
		t.Helper()
		acctest.Must(h.Virsh(t.Context(), args...))(t)
	}
	virsh("vol-create-as", "ssd", "base.qcow2", "32M", "--format", "qcow2")
	virsh("vol-create-as", "ssd", "web.qcow2", "64M", "--format", "qcow2", "--backing-vol", "base.qcow2", "--backing-vol-format", "qcow2")
	virsh("vol-create-as", "ssd", "data.raw", "16M", "--format", "raw", "--allocation", "0")
	seed := acctest.Must(image.ISO("cidata", image.ISOFile{Name: "user-data", Content: []byte("#cloud-config\nhostname: web\n")},
		image.ISOFile{Name: "meta-data", Content: []byte("instance-id: web\n")}))(t)
	if err := os.WriteFile(filepath.Join(folder, "seed.iso"), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	virsh("pool-refresh", "ssd")
	read := func(name string) string {
		t.Helper()
		return strings.ReplaceAll(string(acctest.Must(os.ReadFile(filepath.Join(formerFolder, name)))(t)), formerPool, folder)
	}
	for _, domain := range []string{"web", "efi"} {
		if err := h.DefineXML(t.Context(), read(domain+".xml")); err != nil {
			t.Fatal(err)
		}
	}
	virsh("autostart", "web")
	virsh("start", "web")
	cli := acctest.NewCLI(t)
	cli.Write("terraform.tfstate", read("terraform.tfstate"))
	return cli.WithStandIn("dmacvicar/libvirt")
}

// takenOver is what a user writes for what that state has.
const takenOver = `
moved {
  from = libvirt_volume.base
  to   = virtclaim_disk.base
}

moved {
  from = libvirt_volume.web
  to   = virtclaim_disk.web
}

moved {
  from = libvirt_volume.data
  to   = virtclaim_disk.data
}

moved {
  from = libvirt_cloudinit_disk.seed
  to   = virtclaim_disk.seed
}

moved {
  from = libvirt_domain.web
  to   = virtclaim_virtual_machine.web
}

moved {
  from = libvirt_domain.efi
  to   = virtclaim_virtual_machine.efi
}

resource "virtclaim_disk" "base" {
  host       = "host-a"
  name       = "base.qcow2"
  usage_type = "fast"
  size       = "32Mi"
}

resource "virtclaim_disk" "web" {
  host       = "host-a"
  name       = "web.qcow2"
  usage_type = "fast"
  size       = "64Mi"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_disk.base.volume }
}

resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data.raw"
  usage_type = "fast"
  size       = "16Mi"
  format     = "raw"
}

resource "virtclaim_disk" "seed" {
  host       = "host-a"
  name       = "seed.iso"
  usage_type = "fast"
  source = {
    cloud_init = {
      user_data = "#cloud-config\nhostname: web\n"
      meta_data = "instance-id: web\n"
    }
  }
}

resource "virtclaim_virtual_machine" "web" {
  host        = "host-a"
  name        = "web"
  memory      = "64Mi"
  machine     = { type = "pc", domain_type = "qemu" }
  autostart   = true
  guest_agent = true
  serial      = {}
  rng         = {}
  tpm         = { model = "tpm-tis" }
  graphics    = { type = "vnc" }
  video       = { model = "cirrus", vram = 16384, heads = 1 }
  domain_xml  = "<features><pae/></features>"
  force_stop  = true
  disks = {
    sda = { volume = virtclaim_disk.web.volume, bus = "scsi", wwn = "05abcd4b2c481ace" }
    vdb = { volume = virtclaim_disk.data.volume }
    hdd = { volume = virtclaim_disk.seed.volume, bus = "ide", device = "cdrom", serial = "cloudinit" }
  }
}

resource "virtclaim_virtual_machine" "efi" {
  host        = "host-a"
  name        = "efi"
  memory      = "64Mi"
  machine     = { type = "q35", domain_type = "qemu" }
  guest_agent = true
  rng         = {}
  firmware    = { type = "efi" }
  graphics    = { type = "spice" }
  video       = { model = "cirrus", vram = 16384, heads = 1 }
  domain_xml  = "<features><pae/></features>"
  running     = false
  interfaces  = { lan = { bridge = "br0", mac = "52:54:00:00:67:01" } }
}
`

// What another provider has made is moved here without import ids: nothing is made again, and nothing starts again.
func TestAccVirtualMachine_MovedFromLibvirt(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	cli := formerly(t, a)
	id := running(t, a)
	cli.Write("main.tf", acctest.Provider(l, "moved")+takenOver)
	if out, err := cli.Run("plan", "-refresh=false", "-no-color"); err == nil {
		t.Errorf("planned without what a refresh finds:\n%s", out)
	} else {
		acctest.Contains(t, out, "Error: The moved resource was not read yet")
	}
	out := cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, out, "0 added, 4 changed, 0 destroyed")
	acctest.Contains(t, out, "(moved from libvirt_domain.web)", "(moved from libvirt_cloudinit_disk.seed)")
	words := strings.Join(strings.Fields(out), " ") // the firmware's files, which the peer names
	if !strings.Contains(words, "no attributes for: os/loader, os/nvram.") || strings.Count(words, "no attributes for: ") != 1 {
		t.Errorf("something else has no attribute:\n%s", out)
	}
	cli = cli.WithStandIn() // no more needed
	acctest.Contains(t, plan(t, cli), "No changes.")
	if now := running(t, a); now != id {
		t.Errorf("the machine was started again: its id was %s, and is %s", id, now)
	}
	stored := acctest.Must(a.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)
	acctest.Contains(t, stored, "<uuid>4f81ea58-7c30-470a-91bc-41ce46cf7cea</uuid>", "<wwn>05abcd4b2c481ace</wwn>")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A domain is known by its UUID on any of the hosts, and not taken for one of its name; nothing is made for one that is not found, or
// may be on a host that does not answer.
func TestAccVirtualMachine_MovedIsFoundByUUID(t *testing.T) {
	l := acctest.Lab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	define := func(h *lab.Host, uuid string) {
		t.Helper()
		if err := h.DefineXML(t.Context(), "<domain type='qemu'><name>web</name>"+uuid+`<memory unit='MiB'>32</memory>
			<os><type arch='x86_64' machine='pc'>hvm</type></os></domain>`); err != nil {
			t.Fatal(err)
		}
	}
	cli := acctest.NewCLI(t).WithStandIn("dmacvicar/libvirt")
	cli.Write("terraform.tfstate", `{"version": 4, "serial": 1, "lineage": "a", "resources": [{
		"mode": "managed", "type": "libvirt_domain", "name": "web", "provider": "provider[\"registry.terraform.io/dmacvicar/libvirt\"]", 
		"instances": [{"schema_version": 0, "private": "bnVsbA==",
		"attributes": {"id": "4f81ea58-7c30-470a-91bc-41ce46cf7cea", "name": "web"}}]}]}`)
	cli.Write("main.tf", acctest.Provider(l, "moved")+`
moved {
  from = libvirt_domain.web
  to   = virtclaim_virtual_machine.web
}

resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "web"
  memory  = "32Mi"
  machine = { type = "pc", domain_type = "qemu" }
  running = false
}
`)
	fails := func(parts ...string) {
		t.Helper()
		out, err := cli.Run("plan", "-no-color")
		if err == nil {
			t.Errorf("planned:\n%s", out)
		}
		acctest.Contains(t, joined(out), parts...)
	}
	define(a, "")
	fails("The moved machine could not be found",
		`no host has the domain "web" with UUID 4f81ea58-7c30-470a-91bc-41ce46cf7cea (asked: host-a, host-b)`,
		"import block with the id <host>/web")
	define(b, "<uuid>4f81ea58-7c30-470a-91bc-41ce46cf7cea</uuid>")
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	fails("The moved machine could not be found", "host host-a", "It may be there")
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "libvirt_domain.web has moved to virtclaim_virtual_machine.web",
		"0 added, 0 changed, 0 destroyed")
	cli = cli.WithStandIn()
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
	acctest.Must(a.Virsh(t.Context(), "undefine", "web"))(t)
}
