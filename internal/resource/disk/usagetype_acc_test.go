//go:build acc

package disk_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A host with one storage needs no usage type. A second storage replaces no disk, and an imported disk adopts the default.
func TestAccDisk_DefaultUsageType(t *testing.T) {
	l := acctest.Lab(t)
	two := acctest.Provider(l, "disks")
	one := strings.ReplaceAll(two, `, slow = "rust"`, "")
	without := func(name, size string) string {
		return strings.Replace(disk(name, size), `usage_type = "fast"`, "", 1)
	}
	is := resource.TestCheckResourceAttr(theDisk, "usage_type", "fast")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				PreConfig: func() { virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2") },
				Config:    one + without("root", blank), ResourceName: theDisk, ImportState: true, ImportStateId: "host-a/ssd/root",
				ImportStatePersist: true,
			},
			{Config: one + without("root", blank), ConfigPlanChecks: pre(stays(false)), Check: is},
			{Config: one + without("root", blank) + without("new", blank), Check: resource.TestCheckResourceAttr("virtclaim_disk.new", "usage_type", "fast")},
			{Config: two + without("root", blank) + without("new", blank), PlanOnly: true},
			{Config: two + without("root", `size = "128Mi"`), ConfigPlanChecks: pre(stays(true)), Check: is},
			{
				Config:      two + without("root", `size = "128Mi"`) + without("other", blank),
				ExpectError: message("Unknown usage type", "host host-a has the usage types fast, slow: set usage_type to one of them"),
			},
		},
	})
}
