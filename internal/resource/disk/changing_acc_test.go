//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// changing is an image in a file, and a function that overwrites it with other noise.
func changing(t *testing.T) (path string, change func(noise byte) string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "image")
	change = func(noise byte) string {
		image := smallImage()
		image[0] = noise
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		return string(image)
	}
	return path, change
}

func fromFile(path string) string { return fmt.Sprintf("source = { file = { path = %q } }", path) }

// isSettled fails the test when the plan has changes.
func isSettled(t *testing.T, cli acctest.CLI) {
	t.Helper()
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("a plan after that is not empty:\n%s", plan)
	}
}

// The content of a file or a secret at the time of creation counts, not at plan.
func TestAccDisk_SourceChangedAfterPlan(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	changeSecret := userData(t, l, "#cloud-config one")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", fromFile(path))+seed("seed", fromSecret))
	for i, step := range []struct {
		planned, applied byte
		plan             string
	}{
		{1, 2, "2 to add, 0 to change, 0 to destroy"},
		{3, 4, "2 to add, 0 to change, 2 to destroy"},
		{5, 4, "2 to add, 0 to change, 2 to destroy"}, // as in the beginning
	} {
		change(step.planned)
		changeSecret(fmt.Sprintf("#cloud-config %d planned", i))
		acctest.Contains(t, cli.Must("plan", "-out=the.plan", "-no-color"), step.plan)
		want := change(step.applied)
		changeSecret(fmt.Sprintf("#cloud-config %d applied", i))
		cli.Must("apply", "-no-color", "the.plan")
		if read(t, file(l, "root")) != want {
			t.Error("the disk has not what the file has")
		}
		acctest.Contains(t, read(t, file(l, "seed")), fmt.Sprintf("#cloud-config %d applied", i))
		isSettled(t, cli)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A disk that is planned to be changed in place is never replaced without a plan.
func TestAccDisk_SourceChangedBeforeGrow(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	was := change(1)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", fromFile(path)))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", "size = \"2Mi\"\n"+fromFile(path)))
	cli.Must("plan", "-out=the.plan", "-no-color")
	change(2)
	out, err := cli.Run("apply", "-no-color", "the.plan")
	if err == nil || !message("Its file or seed is not what it was made from", "that changed after the plan: the disk was not touched").MatchString(out) {
		t.Errorf("the apply ended with %v:\n%s", err, out)
	}
	if read(t, file(l, "root")) != was {
		t.Error("the disk was recreated")
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "virtclaim_disk.root must be replaced")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The kind of source of a disk may be unknown until the apply.
func TestAccDisk_SourceKnownDuringApply(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	want := change(1)
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks") + `
resource "terraform_data" "choice" {
  input            = "file"
  triggers_replace = "one"
}
` + disk("chosen", fmt.Sprintf(`source = {
    url  = terraform_data.choice.output == "url" ? { url = "https://example.org/image" } : null
    file = terraform_data.choice.output == "file" ? { path = %q } : null
  }`, path)) + disk("blank", blank+`
  source = terraform_data.choice.output == "url" ? { url = { url = "https://example.org/image" } } : null`) +
		disk("seed", `source = terraform_data.choice.output == "file" ? { cloud_init = { user_data = "#cloud-config" } } : null`)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	if read(t, file(l, "chosen")) != want {
		t.Error("the disk has not what the file has")
	}
	acctest.Contains(t, cli.Must("show", "-json"), `"format":"qcow2"`, `"format":"raw"`)
	isSettled(t, cli)
	cli.Replace("main.tf", `"one"`, `"two"`) // only the choice is replaced: it is unknown again, and turns out the same
	acctest.Contains(t, cli.Must("plan", "-out=the.plan", "-no-color"), "1 to destroy")
	cli.Must("apply", "-no-color", "the.plan")
	isSettled(t, cli)
	cli.Must("destroy", "-auto-approve", "-no-color")
}
