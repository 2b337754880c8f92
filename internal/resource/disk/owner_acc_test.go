//go:build acc

package disk_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// After a change of the owner existing disks and machines continue, and are still distinguished from those of other configurations.
func TestAccDisk_ChangedOwner(t *testing.T) {
	for name, set := range map[string]string{"to another one": `owner = "renamed"`, "to none": ""} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			console := acctest.NewConsole(t)
			old, fresh := disk("root", blank)+disk("data", blank), disk("fresh", blank)
			before := acctest.Provider(l, "disks")
			after := regexp.MustCompile(`owner .*`).ReplaceAllString(before, set)
			config := func(provider, disks string, on ...string) string {
				return provider + disks + vm(l, console, "", "", on...)
			}
			root, data, more := on("root", theDisk, ""), on("vol", "virtclaim_disk.data", ""), on("x", "virtclaim_disk.fresh", "")
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{Config: config(before, old, root, data), Check: boots(t, console, 1)},
					{
						// The disk is of the new owner, and so is the machine that gets it.
						Config: config(after, old+fresh, root, data, more),
						Check:  resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb", "vdc")),
					},
					{
						Config: config(after, disk("root", blank)+fresh, root, more),
						ConfigPlanChecks: pre(planned(theMachine, plancheck.ResourceActionUpdate),
							planned("virtclaim_disk.data", plancheck.ResourceActionDestroy)),
						Check: resource.ComposeTestCheckFunc(boots(t, console, 1), gone(file(l, "data"))),
					},
				},
			})
		})
	}
}

// After the owner has changed, an old machine loses one disk to a new machine and another one that is destroyed, in one apply; then one that
// is newer than itself.
func TestAccDisk_MovesAfterChangedOwner(t *testing.T) {
	l := acctest.Lab(t)
	before := acctest.Provider(l, "disks")
	after := regexp.MustCompile(`owner .*`).ReplaceAllString(before, `owner = "renamed"`)
	first, old, fresh := disk("first", blank), disk("data", blank), disk("fresh", blank)
	data, more := on("data", "virtclaim_disk.data", ""), on("more", "virtclaim_disk.fresh", "")
	two := strings.ReplaceAll(bare("running = false", data), `"web"`, `"two"`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: before + first + old + bare("running = false", data, on("first", "virtclaim_disk.first", ""))},
			{Config: after + old + fresh + bare("running = false", more) + two, Check: gone(file(l, "first"))},
			{Config: after + old + bare("running = false") + two, Check: gone(file(l, "fresh"))},
		},
	})
}

// A volume that another configuration created under the name of a deleted disk is not that disk.
func TestAccDisk_TakenByAnotherOwnerCountsAsGone(t *testing.T) {
	l := acctest.Lab(t)
	ours, theirs := acctest.NewCLI(t), acctest.NewCLI(t)
	ours.Write("main.tf", acctest.Provider(l, "ours")+disk("root", blank))
	theirs.Write("main.tf", acctest.Provider(l, "theirs")+disk("root", blank))
	ours.Must("apply", "-auto-approve", "-no-color")
	ours.Must("plan", "-no-color") // its journal has been removed
	virsh(t, l, "vol-delete", "root", "--pool", "ssd")
	theirs.Must("apply", "-auto-approve", "-no-color")
	if plan := ours.Must("plan", "-no-color"); !strings.Contains(plan, "Plan: 1 to add") {
		t.Errorf("it is not planned again:\n%s", plan)
	}
	ours.Must("destroy", "-auto-approve", "-no-color", "-refresh=false")
	if plan := theirs.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the other's is not as it was:\n%s", plan)
	}
	theirs.Must("destroy", "-auto-approve", "-no-color")
}
