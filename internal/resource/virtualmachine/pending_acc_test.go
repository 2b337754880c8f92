//go:build acc

package virtualmachine_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// libvirt completes the definition of a running domain, such as its processor, its ports and its places on the bus: none of that is
// reported as pending, or allow_restart would restart a machine at each apply.
func TestAccVirtualMachine_NothingPendingAfterStart(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "complete") + `
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = "1Mi"
}

resource "virtclaim_disk" "scratch" {
  host       = "host-a"
  name       = "scratch"
  usage_type = "fast"
  size       = "1Mi"
}
` + machine{
		machineType: "q35", log: console.Path(), disks: []string{
			`data = { volume = virtclaim_disk.data.volume, serial = "data", cache = "none", io = "threads", iothread = 1 }`,
			`disc = { device = "cdrom" }`, `scratch = { volume = virtclaim_disk.scratch.volume, bus = "scsi" }`,
		}, more: `
  cpu           = { vcpus = 1, max_vcpus = 2, mode = "host-model" }
  max_memory    = "256Mi"
  firmware      = { type = "efi" }
  tpm           = {}
  graphics      = { type = "spice" }
  video         = { model = "virtio" }
  rng           = {}
  watchdog      = {}
  console       = {}
  guest_agent   = true
  interfaces    = { lan = { user = true } }
  title         = "all of it"
  allow_restart = true
  force_stop    = true
  devices_xml   = "<sound model='ac97'/>"`,
	}.hcl(l)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: resource.ComposeTestCheckFunc(waits(), resource.TestCheckResourceAttrSet(web, "endpoints.graphics"))},
			{PreConfig: func() { suspended(t, l.Hosts["host-a"]) }, Config: config, Destroy: true}, // its firmware would ignore its power button
		},
	})
}
