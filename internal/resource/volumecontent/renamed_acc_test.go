//go:build acc

package volumecontent_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Under another name without a moved block, the resource is created and destroyed in one apply: that must not erase what the new one has.
func TestAccVolumeContent_Renamed(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "content-faults", "data", lun)
	file := imageOf(t, "one", imageSize)
	cli, _ := acctest.Tapped(t, l, "faults")
	config := claimed("data", file, "erase = true\n overwrite = true")
	cli.Write("main.tf", config)
	defer cli.Must("destroy", "-auto-approve", "-no-color")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", strings.ReplaceAll(config, `"virtclaim_volume_content" "data"`, `"virtclaim_volume_content" "renamed"`))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err != nil {
		if !message("say so in a moved block").MatchString(out) {
			t.Fatal(out)
		}
		cli.Must("apply", "-auto-approve", "-no-color")
	}
	isFilled(t, lun, file)
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Error(plan)
	}
}

// An apply that was killed after it had written other content, and whose change was taken back, has written it all the same.
func TestAccVolumeContent_Reverted(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "content-faults", "data", lun)
	one, two := imageOf(t, "one", imageSize), imageOf(t, "two", imageSize)
	cli, tap := acctest.Tapped(t, l, "faults")
	cli.Write("main.tf", claimed("data", one, ""))
	defer cli.Must("destroy", "-auto-approve", "-no-color")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", claimed("data", two, ""))
	tap.Arm(lab.Fault{Call: lab.CallUndefine, Nth: 2, After: true, Kill: true})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !tap.Fired() {
		t.Fatalf("it was not interrupted: %v\n%s", err, out)
	}
	isFilled(t, lun, two)
	cli.Write("main.tf", claimed("data", one, ""))
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !message("filled with other content").MatchString(out) {
		t.Error(out)
	}
	isFilled(t, lun, one)
}
