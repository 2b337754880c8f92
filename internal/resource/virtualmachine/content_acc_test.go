//go:build acc

package virtualmachine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// golden is a claim that is filled by one binding, and read by another one of the same owner.
func golden(image string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "fill" {
  name   = "golden-fill"
  hosts  = ["host-a", "host-b"]
  source = { persistent_volume_claim = { namespace = "content", claim_name = "golden" } }
}

resource "virtclaim_volume_content" "golden" {
  target = virtclaim_volume_binding.fill.volume
  source = { file = { path = %q } }
}

resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["host-a", "host-b"]
  access_mode = "read-shared"
  content     = virtclaim_volume_content.golden.instance_id
  source      = { persistent_volume_claim = { namespace = "content", claim_name = "golden" } }
}
`, image)
}

// A golden image is put into an empty claim, machines of two hosts run on overlays of it, and all are replaced when it has other content.
func TestAccVolumeContent_GoldenImage(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "content", "golden", lun)
	one, two := filepath.Join(t.TempDir(), "one.raw"), filepath.Join(t.TempDir(), "two.raw")
	for path, text := range map[string]string{one: "the first image", two: "the second image"} {
		if err := os.WriteFile(path, append([]byte(text), make([]byte, 1<<20)...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	consoles := []acctest.Console{acctest.NewConsole(t), acctest.NewConsole(t), acctest.NewConsole(t)}
	config := func(image string) string {
		text := acctest.Provider(l, "content") + golden(image)
		for n, host := range []string{"host-a", "host-a", "host-b"} {
			name := fmt.Sprintf("web-%d", n)
			text += strings.ReplaceAll(copyOf("golden", name, "copy-on-write"), "host-a", host) +
				machine{
					name: name, host: host, log: consoles[n].Path(),
					disks: []string{fmt.Sprintf("root = { volume = virtclaim_disk.%s.volume, boot_order = 1 }", name)},
					more:  fmt.Sprintf("force_stop = true\nlifecycle { replace_triggered_by = [virtclaim_disk.%s.id] }", name),
				}.hcl(l)
		}
		return text
	}
	reads := func(boots int, text string) func(*terraform.State) error {
		return func(*terraform.State) error {
			for _, c := range consoles {
				acctest.Contains(t, c.AwaitN(t, "DISK vda ", boots), "first="+text)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(one), Check: reads(1, "the first image")},
			{
				Config: config(two), Check: reads(2, "the second image"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("virtclaim_volume_content.golden", plancheck.ResourceActionUpdate),
				}},
			},
		},
	})
	if got := acctest.StoredAt(t, lun.Path, 0, 16); got != "the second image" {
		t.Errorf("a destroy has changed what is on the volume: %q", got)
	}
}
