package disk_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccAnImportedDiskIsAdopted(t *testing.T) {
	l := acctest.Lab(t)
	_, source := golden(t, l, "the master")
	config := acctest.Provider(l, "disks") + source + disk("root", over("copy-on-write", "virtclaim_volume_binding.golden"))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: acctest.Provider(l, "disks") + source},
			{
				PreConfig: func() { virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2") },
				Config:    config, ResourceName: theDisk, ImportState: true, ImportStateId: "host-a/ssd/root", ImportStatePersist: true,
				ImportStateCheck: nil,
			},
			{
				Config: config, ConfigPlanChecks: pre(stays(true)),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(theDisk, "volume.images.#", "2"),
					resource.TestCheckNoResourceAttr(theDisk, "volume.images.0.generation")),
			},
			{Config: config, PlanOnly: true},
		},
	})
}

// An imported disk is adopted once: laid over a master later, its guest would find its files mixed with the master's.
func TestAccAnImportedDiskIsLaidOverNothingLater(t *testing.T) {
	l := acctest.Lab(t)
	_, source := golden(t, l, "the master")
	base := acctest.Provider(l, "disks") + source
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: base},
			{
				PreConfig: func() { virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2") },
				Config:    base + disk("root", blank), ResourceName: theDisk, ImportState: true, ImportStateId: "host-a/ssd/root",
				ImportStatePersist: true,
			},
			{Config: base + disk("root", blank), ConfigPlanChecks: pre(stays(true))},
			{
				Config:           base + disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionReplace)),
			},
		},
	})
}

// What an imported overlay is laid over is what it was made over.
func TestAccAnImportedDiskKeepsItsBacking(t *testing.T) {
	l := acctest.Lab(t)
	base := acctest.Provider(l, "disks") + disk("lower", blank) + disk("other", blank)
	on := func(of string) string { return base + disk("root", over("copy-on-write", of)) }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: base},
			{
				PreConfig: func() {
					virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2", "--backing-vol", "lower", "--backing-vol-format", "qcow2")
				},
				Config: on("virtclaim_disk.lower"), ResourceName: theDisk, ImportState: true, ImportStateId: "host-a/ssd/root",
				ImportStatePersist: true,
			},
			{
				Config:      acctest.Provider(l, "disks") + disk("root", blank),
				ExpectError: message("An overlay without its master", "is an overlay of "+file(l, "lower")),
			},
			{
				Config:      on("virtclaim_disk.other"),
				ExpectError: message("Another master than it was made over", "is an overlay of "+file(l, "lower"), "laid over "+file(l, "other")),
			},
			{Config: on("virtclaim_disk.lower"), ConfigPlanChecks: pre(stays(true))},
			{Config: on("virtclaim_disk.lower"), PlanOnly: true},
		},
	})
}
