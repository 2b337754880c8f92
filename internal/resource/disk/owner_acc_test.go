package disk_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A changed owner concerns what is new: disks and machines of before go on, and are told from those of others.
func TestAccAChangedOwnerKeepsItsDisks(t *testing.T) {
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
						// The disk is of the new owner, the machine of the old one.
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
