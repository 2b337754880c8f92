//go:build acc

package virtualmachine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// containerImages is a copy of the example container-images, with its variables for the lab.
func containerImages(t *testing.T, l *lab.Lab) (*lab.ContainerImages, acctest.CLI) {
	t.Helper()
	logs := t.TempDir()
	scenario := acctest.Must(l.AddContainerImages(t.Context(), logs))(t)
	acctest.Undo(t, scenario.Remove)
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"web", "database"} {
				t.Logf("%s: %s", name, acctest.ConsoleAt(filepath.Join(logs, name+".log")).Text(t))
			}
		}
	})
	var variables []string
	for name, value := range scenario.Variables {
		variables = append(variables, name+"="+value)
	}
	cli := acctest.NewCLI(t, variables...)
	cli.Write("versions.tf", "") // main.tf names the provider
	const dir = "../../../examples/scenarios/container-images"
	for _, file := range acctest.Must(os.ReadDir(dir))(t) {
		cli.Write(file.Name(), string(acctest.Must(os.ReadFile(filepath.Join(dir, file.Name())))(t)))
	}
	return scenario, cli
}

// The example container-images as it stands: a web server and a database from unmodified images serve, and the database has its data on a claim, which a
// replaced machine reads.
func TestAccVirtualMachine_ContainerImagesScenario(t *testing.T) {
	l := acctest.Lab(t)
	scenario, cli := containerImages(t, l)
	cli.Must("apply", "-auto-approve", "-no-color")
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = cli.Run("destroy", "-auto-approve", "-no-color")
		}
	})
	if page := acctest.Must(scenario.Page(t.Context()))(t); page != artefact.WebPage {
		t.Errorf("the page is %q", page)
	}
	_ = acctest.Must(scenario.Query(t.Context(), "CREATE TABLE visits (text text); INSERT INTO visits VALUES ('first')"))(t)
	cli.Must("plan", "-detailed-exitcode", "-no-color")

	// Another image is another disk, and another machine with it.
	acctest.Contains(t, cli.Must("plan", "-no-color", `-replace=virtclaim_disk.root["web"]`), "2 to add, 0 to change, 2 to destroy")
	replaced := cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_virtual_machine.database")
	acctest.Contains(t, replaced, "1 added, 0 changed, 1 destroyed")
	if rows := acctest.Must(scenario.Query(t.Context(), "SELECT text FROM visits"))(t); rows != "first" {
		t.Errorf("the replaced machine has the rows %q", rows)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
