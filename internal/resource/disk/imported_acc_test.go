//go:build acc

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccDisk_ImportAdopts(t *testing.T) {
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
					resource.TestCheckResourceAttrSet(theDisk, "volume.images.0.instance_id")),
			},
			{Config: config, PlanOnly: true},
		},
	})
}

// The master of an imported disk is decided by the first configuration that changes it: with a master added later, its guest would find its files mixed with the master's.
func TestAccDisk_ImportedWithoutMasterStaysSo(t *testing.T) {
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
			{Config: base + disk("root", blank), ConfigPlanChecks: pre(stays(false))},
			{Config: base + disk("root", blank+"\n  timeouts = { read = \"1m\" }"), ConfigPlanChecks: pre(stays(true))},
			{
				Config:           base + disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionReplace)),
			},
		},
	})
}

// An imported overlay accepts only the master that it was created with.
func TestAccDisk_ImportKeepsBacking(t *testing.T) {
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

// Disks whose state was lost are imported as configured, and deleted with all their records and shared images.
func TestAccDisk_ImportOfImages(t *testing.T) {
	l := acctest.Lab(t)
	_, pulled := pushed(t, l, "disks/imported", qcow2Image(t))
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, rawImage(), 0o600); err != nil {
		t.Fatal(err)
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("pulled", containerImage(pulled.Reference))+
		disk("copied", "source = { file = { path = \""+path+"\" } }")+seed("seed", `user_data = "#cloud-config"`))
	cli.Must("apply", "-auto-approve", "-no-color")
	for _, name := range []string{"pulled", "copied", "seed"} {
		cli.Must("state", "rm", "virtclaim_disk."+name)
		cli.Must("import", "-no-color", "virtclaim_disk."+name, "host-a/ssd/"+name)
	}
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 3 changed, 0 destroyed") || strings.Contains(out, "that it was not given") {
		t.Errorf("the disks were not just adopted:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A disk without a backing file was never created from a container image: it would have a shared image below it.
func TestAccDisk_ImportOfPlainAsContainerImage(t *testing.T) {
	l := acctest.Lab(t)
	_, pulled := pushed(t, l, "disks/plain", qcow2Image(t))
	config := acctest.Provider(l, "disks") + disk("root", containerImage(pulled.Reference))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				PreConfig: func() { virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2") },
				Config:    config, ResourceName: theDisk, ImportState: true, ImportStateId: "host-a/ssd/root", ImportStatePersist: true,
			},
			{Config: config, ExpectError: message("Not made from a container image", "host-a/ssd/root is an overlay of nothing")},
			{Config: acctest.Provider(l, "disks") + disk("root", blank), ConfigPlanChecks: pre(stays(false))},
		},
	})
}

// An imported disk has its identity in its header once a machine was started with it: a file that replaces it is not deleted.
func TestAccDisk_ImportedAndReplacedByHand(t *testing.T) {
	l := acctest.Lab(t)
	made := []string{"vol-create-as", "ssd", "root", "64M", "--format", "qcow2"}
	virsh(t, l, made...)
	cli := acctest.NewCLI(t)
	write := func(running string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", blank)+bare("running = "+running, on("root", theDisk, "")))
	}
	write("true")
	cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
	cli.Must("apply", "-auto-approve", "-no-color")
	write("false")
	virsh(t, l, "suspend", "web")
	cli.Must("apply", "-auto-approve", "-no-color")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	virsh(t, l, "vol-delete", "root", "--pool", "ssd")
	virsh(t, l, made...)
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color"); err == nil || !message("the volume can't be recognized").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	virsh(t, l, "vol-delete", "root", "--pool", "ssd")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
