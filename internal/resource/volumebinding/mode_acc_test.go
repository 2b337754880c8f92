//go:build acc

package volumebinding_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// unreserved configures the provider to reserve no claims.
func unreserved(config string) string {
	return strings.Replace(config, "kubernetes = { ", "kubernetes = { reserve_claims = false, ", 1)
}

func TestAccVolumeBinding_IncompatibleModeIsRefused(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "modes", "data", acctest.LUN(t, l, true, ""))
	config := binding(fromClaim("modes", "data"), `access_mode = "read-shared"`, "host-a")
	one, two := configured(t, l, "one", config), configured(t, l, "two", config)
	one.Must("apply", "-auto-approve")
	two.Must("apply", "-auto-approve")
	heldBy(t, l, "modes", "data", "one/data read-shared", "two/data read-shared")

	one.Replace("main.tf", "read-shared", "write-exclusive")
	out, err := one.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("it became write-exclusive")
	}
	says(t, out, "The binding could not be updated", "can't be reserved write-exclusive", `it is held by binding "data" of owner "two" (read-shared`)
	heldBy(t, l, "modes", "data", "one/data read-shared", "two/data read-shared")
	one.Replace("main.tf", "write-exclusive", "read-shared")
	says(t, one.Must("plan", "-no-color"), "No changes.")

	two.Must("destroy", "-auto-approve")
	one.Replace("main.tf", "read-shared", "write-exclusive")
	one.Must("apply", "-auto-approve")
	heldBy(t, l, "modes", "data", "one/data write-exclusive")
	out, err = two.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("it is shared with a writer")
	}
	says(t, out, "The volume could not be bound", "can't be reserved read-shared", `it is held by binding "data" of owner "one" (write-exclusive`)

	one.Replace("main.tf", "write-exclusive", "read-shared")
	one.Must("apply", "-auto-approve")
	two.Must("apply", "-auto-approve")
	heldBy(t, l, "modes", "data", "one/data read-shared", "two/data read-shared")
	one.Must("destroy", "-auto-approve")
	two.Must("destroy", "-auto-approve")
	heldBy(t, l, "modes", "data")
}

// An update that fails after the new mode was reserved restores the old mode, and removes the credentials from a new host.
func TestAccVolumeBinding_FailedUpdateIsReverted(t *testing.T) {
	for _, f := range []lab.Fault{
		{Call: lab.CallSecretDefine, Nth: 1},
		{Call: lab.CallSecretDefine, Nth: 1, After: true},
		{Call: lab.CallSecretDefine, Nth: 2, After: true},
	} {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "interrupted", "data", acctest.LUN(t, l, true, ""))
			cli, tap := tapped(t, l, "modes", binding(fromClaim("interrupted", "data"), "", "host-b"))
			cli.Must("apply", "-auto-approve")
			cli.Replace("main.tf", `hosts  = ["host-b"]`, `hosts  = ["host-b", "host-a"]
  access_mode = "read-shared"`)
			tap.Arm(f)
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if !tap.Fired() || err == nil {
				t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
			}
			heldBy(t, l, "interrupted", "data", "modes/data write-exclusive")
			if err := secretsOn(l, map[string]int{"host-a": 0, "host-b": 1})(nil); err != nil {
				t.Error(err)
			}
			cli.Must("apply", "-auto-approve")
			heldBy(t, l, "interrupted", "data", "modes/data read-shared")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "interrupted", "data")
		})
	}
}

// A running machine keeps the mode that it was started with: incompatible machines must not be admitted beside it.
func TestAccVolumeBinding_ModeOfRunningMachine(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "modes", "data", acctest.LUN(t, l, true, ""))
	cli := configured(t, l, "modes", binding(fromClaim("modes", "data"), `access_mode = "write-exclusive"`, "host-a")+web(l, acctest.NewConsole(t)))
	cli.Must("apply", "-auto-approve")
	for _, mode := range []string{"write-shared", "read-shared"} {
		cli.Replace("main.tf", "write-exclusive", mode)
		out, err := cli.Run("apply", "-auto-approve", "-no-color")
		if err == nil {
			t.Fatalf("it became %s", mode)
		}
		says(t, out, "The binding could not be updated", "it can't become "+mode+" while domain web on host host-a runs with it write-exclusive",
			"running = false")
		heldBy(t, l, "modes", "data", "modes/data write-exclusive")
		cli.Replace("main.tf", mode, "write-exclusive")
	}
	cli.Replace("main.tf", "force_stop = true", "force_stop = true\n  running = false")
	cli.Must("apply", "-auto-approve")
	cli.Replace("main.tf", "write-exclusive", "write-shared")
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "modes", "data", "modes/data write-shared")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "modes", "data")
}

// A running machine that has the storage only below an overlay writes nothing to it.
func TestAccVolumeBinding_ModeBelowOverlay(t *testing.T) {
	l := acctest.Lab(t)
	image := filepath.Join(t.TempDir(), "disk.img")
	writeFile(t, image, 1<<20)
	cli := configured(t, l, "modes", binding(fmt.Sprintf("file = { path = %q }", image), `access_mode = "write-exclusive"`, "host-a")+`
resource "virtclaim_disk" "over" {
  host       = "host-a"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`+strings.Replace(deaf, "virtclaim_volume_binding.data", "virtclaim_disk.over", 1))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Replace("main.tf", "write-exclusive", "read-shared")
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	destroySuspended(t, l, cli)
}

func TestAccVolumeBinding_ReserveClaimsSwitched(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "modes", "data", acctest.LUN(t, l, true, ""))
	config := acctest.Provider(l, "modes") + binding(fromClaim("modes", "data"), "", "host-a")
	held := func(reserved string, want ...string) resource.TestCheckFunc {
		return resource.ComposeTestCheckFunc(resource.TestCheckResourceAttr(data, "reserved", reserved), func(*terraform.State) error {
			heldBy(t, l, "modes", "data", want...)
			return nil
		})
	}
	update := planned(plancheck.ResourceActionUpdate)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: held("true", "modes/data write-exclusive")},
			{Config: unreserved(config), ConfigPlanChecks: update, Check: held("false")},
			{Config: config, ConfigPlanChecks: update, Check: held("true", "modes/data write-exclusive")},
			{Config: unreserved(config), ConfigPlanChecks: update, Check: held("false")},
		},
	})
	heldBy(t, l, "modes", "data")
}

// While the source is unknown, it is also unknown whether there is a claim to reserve.
func TestAccVolumeBinding_UnknownSourceIsReserved(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "unknown", "data", acctest.LUN(t, l, true, ""))
	claim := `{ namespace = "unknown", claim_name = "data" }`
	given := func(value string) string {
		return "resource \"terraform_data\" \"given\" {\n  input = " + value + "\n}\n"
	}
	for name, config := range map[string]string{
		"claim": given(claim) + binding("persistent_volume_claim = terraform_data.given.output", "", "host-a"),
		"source": given("{ persistent_volume_claim = "+claim+" }") +
			strings.Replace(binding("", "", "host-a"), "{  }", "terraform_data.given.output", 1),
	} {
		t.Run(name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: acctest.Provider(l, "unknown") + config,
					Check: resource.ComposeTestCheckFunc(resource.TestCheckResourceAttr(data, "reserved", "true"), func(*terraform.State) error {
						heldBy(t, l, "unknown", "data", "unknown/data write-exclusive")
						return nil
					}),
				}},
			})
		})
	}
}
