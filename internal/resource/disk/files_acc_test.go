//go:build acc

package disk_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A guest with Linux reads Joliet's names, in folders of several sectors too: the media of ConfigDrive with an unattended setup of Windows,
// of Talos, of cloud-init with vendor data, and of Combustion. One changes while the machine runs.
func TestAccDisk_FilesForGuests(t *testing.T) {
	l := acctest.Lab(t)
	userData(t, l, "from the cluster")
	console := acctest.NewConsole(t)
	config := func(hostname string) string {
		return acctest.Provider(l, "disks") +
			disk("drive", `source = { files = {
    label   = "config-2"
    content = merge({
      "openstack/latest/user_data" = "hostname: `+hostname+`\n"
      "Autounattend.xml"           = "<unattend/>"
      "$OEM$/$1/Setup/Größe.txt"   = "ä"
    }, { for i in range(40) : format("Many Files/A File with a long Name and the Number %02d.Text", i) => "file ${i}" })
    content_wo         = { "openstack/latest/meta_data.json" = "{}" }
    content_wo_version = 1
    secrets            = { "openstack/latest/Vendor_Data.json" = { namespace = "disks", name = "seed", key = "userData" } }
  } }`) +
			disk("talos", `source = { files = { label = "metal-iso", content = { "config.yaml" = "version: v1alpha1\n" } } }`) +
			disk("vendor", `source = { files = { label = "cidata", content = {
    user-data = "#cloud-config\n", meta-data = "instance-id: web\n", vendor-data = "#cloud-config\npackages: []\n" } } }`) +
			disk("combustion", `source = { files = { label = "combustion", content = { "combustion/script" = "#!/bin/bash\n" } } }`) +
			vm(l, console, "virtclaim.cdroms=4", "", on("a", "virtclaim_disk.drive", `, device = "cdrom"`), on("b", "virtclaim_disk.talos", `, device = "cdrom"`),
				on("c", "virtclaim_disk.vendor", `, device = "cdrom"`), on("d", "virtclaim_disk.combustion", `, device = "cdrom"`))
	}
	has := func(drive, label string, files map[string]string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			console.Await(t, "READY")
			said := acctest.Must(l.Hosts["host-a"].Shell(context.Background(), "web", "report_cdrom "+drive+"; read_cdrom "+drive))(t)
			acctest.Contains(t, said, "label="+label, "ro=1")
			for name, content := range files {
				acctest.Contains(t, said, "FILE "+drive+" "+name+" "+base64.StdEncoding.EncodeToString([]byte(content)))
			}
			if got := strings.Count(said, "FILE "); got != len(files) {
				t.Errorf("%s has %d files, want %d:\n%s", drive, got, len(files), said)
			}
			return nil
		}
	}
	drive := func(hostname string) map[string]string {
		files := map[string]string{
			"openstack/latest/user_data": "hostname: " + hostname + "\n", "openstack/latest/meta_data.json": "{}",
			"openstack/latest/Vendor_Data.json": "from the cluster", "Autounattend.xml": "<unattend/>", "$OEM$/$1/Setup/Größe.txt": "ä",
		}
		for i := range 40 {
			files[fmt.Sprintf("Many Files/A File with a long Name and the Number %02d.Text", i)] = fmt.Sprint("file ", i)
		}
		return files
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("first"),
				Check: resource.ComposeTestCheckFunc(
					has("sr0", "config-2", drive("first")), has("sr1", "metal-iso", map[string]string{"config.yaml": "version: v1alpha1\n"}),
					has("sr2", "cidata", map[string]string{
						"user-data": "#cloud-config\n", "meta-data": "instance-id: web\n", "vendor-data": "#cloud-config\npackages: []\n",
					}),
					has("sr3", "combustion", map[string]string{"combustion/script": "#!/bin/bash\n"}),
				),
			},
			{Config: config("first"), PlanOnly: true},
			{
				Config: config("second"),
				ConfigPlanChecks: pre(planned("virtclaim_disk.drive", plancheck.ResourceActionDestroyBeforeCreate),
					planned(theMachine, plancheck.ResourceActionUpdate), planned("virtclaim_disk.talos", plancheck.ResourceActionNoop)),
				Check: resource.ComposeTestCheckFunc(has("sr0", "config-2", drive("second")), boots(t, console, 1)),
			},
			{Config: config("second"), PlanOnly: true},
		},
	})
}

// The same files are the same bytes, and other ones, another version or key of a secret make another disk.
func TestAccDisk_FilesAreReplacedByContent(t *testing.T) {
	l := acctest.Lab(t)
	change := userData(t, l, "from the cluster")
	one := acctest.Provider(l, "disks") + disk("root", `source = { files = {
    label = "x", content = { a = "text of a" }, content_wo = { b = "text of b" }, content_wo_version = 1
    secrets = { c = { namespace = "disks", name = "seed", key = "userData" } } } }`)
	var first string
	changed := func(from, to string, want ...string) resource.TestStep {
		return resource.TestStep{
			Config: strings.Replace(one, from, to, 1), ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
			Check: seedHas(t, l, "root", want...),
		}
	}
	ofSecret := resource.TestStep{
		PreConfig: func() { change("changed in the cluster") }, Config: one,
		ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)), Check: seedHas(t, l, "root", "changed in the cluster"),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: strings.Replace(one, "{ b =", "{ A =", 1), ExpectError: message(`two files have the path "a"`)},
			{Config: strings.Replace(one, "{ a =", `{ "../a" =`, 1), ExpectError: message(`"../a" can't be a path on an ISO image`)},
			{Config: strings.Replace(one, `"x"`, `"x y"`, 1), ExpectError: message("1 to 16 letters")},
			{
				Config: one, Check: func(s *terraform.State) error {
					first = read(t, file(l, "root"))
					return seedHas(t, l, "root", "text of a", "text of b", "from the cluster")(s)
				},
			},
			{Config: one, PlanOnly: true},
			changed(`"text of a"`, `"another"`, "another", "text of b"),
			changed(`"x"`, `"y"`, "text of a"),
			changed(`key = "userData"`, `key = "networkdata"`, "version: 2"),
			changed(`content_wo_version = 1`, `content_wo_version = 2`, "text of b"),
			{
				Config: one, Check: func(*terraform.State) error {
					if read(t, file(l, "root")) != first {
						return fmt.Errorf("the same files made another image")
					}
					return nil
				},
			},
			ofSecret,
		},
	})
}

// The volume has the configuration and spaces behind it.
func TestAccDisk_IgnitionBytes(t *testing.T) {
	l := acctest.Lab(t)
	userData(t, l, "core")
	ignition := func(more string) string {
		return acctest.Provider(l, "disks") + disk("root", "source = { ignition = {"+more+"} }")
	}
	is := func(want string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if got := read(t, file(l, "root")); got != want+strings.Repeat(" ", 4096-len(want)) {
				return fmt.Errorf("the volume has %q", got)
			}
			return nil
		}
	}
	const inline = `config = jsonencode({ ignition = { version = "3.4.0" } })`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: ignition(`config = "variant: fcos\n"`), ExpectError: message("transpile it")},
			{Config: ignition(inline + `, secret_ref = { namespace = "disks", name = "seed" }`), ExpectError: message("Invalid Attribute Combination")},
			{Config: ignition(inline), Check: is(`{"ignition":{"version":"3.4.0"}}`)},
			{Config: ignition(inline), PlanOnly: true},
			{
				Config: ignition(strings.Replace(inline, "3.4", "3.5", 1)), Check: is(`{"ignition":{"version":"3.5.0"}}`),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
			},
			{
				Config: ignition(`secret_ref = { namespace = "disks", name = "seed" }`), Check: is(`{"ignition":{"version":"3.4.0"},"of":"core"}`),
				ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionDestroyBeforeCreate)),
			},
		},
	})
}
