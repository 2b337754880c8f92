//go:build acc

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The plugin framework formats its trace only if a variable asks for a log, and then all of it.
func TestAccProvider_LogsWhatIsAskedFor(t *testing.T) {
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, name := t.TempDir(), "terraform-provider-virtclaim"
	script := "#!/bin/sh\nexec " + filepath.Join(root, ".lab", "bin", name) + " \"$@\" 2>>" + filepath.Join(dir, "stderr") + "\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for variable, traces := range map[string]bool{"UNRELATED=1": false, "TF_LOG=TRACE": true, "TF_LOG_PROVIDER=TRACE": true, "TF_LOG_SDK=TRACE": true} {
		_ = os.Remove(filepath.Join(dir, "stderr"))
		cli := acctest.NewCLI(t, variable).WithProvider(dir)
		cli.Write("main.tf", `provider "virtclaim" {}`+"\n"+`data "virtclaim_host" "any" { host = "none" }`)
		cli.Must("validate", "-no-color")
		said, err := os.ReadFile(filepath.Join(dir, "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"@module":"sdk.proto"`, `"@module":"sdk.framework"`} {
			if strings.Contains(string(said), part) != traces {
				t.Errorf("with %s, whether the log has %s is %t", variable, part, !traces)
			}
		}
	}
}
