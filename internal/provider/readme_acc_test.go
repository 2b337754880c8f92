//go:build acc

package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What the README shows works as it stands, with the provider where make install puts it. -o build: the tests beside this one run what is built.
func TestAccReadme_ConfigurationsAreValid(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	configurations := strings.Split(string(text), "```hcl\n")[1:]
	if len(configurations) < 3 {
		t.Fatalf("the README has %d configurations", len(configurations))
	}
	home := t.TempDir()
	install := exec.CommandContext(t.Context(), "make", "-C", "../..", "-o", "build", "install", "PLUGINS="+filepath.Join(home, ".terraform.d/plugins"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	cli := acctest.NewCLI(t, "TF_CLI_CONFIG_FILE="+os.DevNull, "HOME="+home)
	cli.Write("versions.tf", "")
	for n, text := range configurations {
		text, _, _ = strings.Cut(text, "```\n")
		cli.Write(fmt.Sprintf("readme-%d.tf", n), text)
	}
	cli.Must("init", "-no-color")
	cli.Must("validate", "-no-color")
}
