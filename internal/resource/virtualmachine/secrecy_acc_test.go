//go:build acc

package virtualmachine_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The password of the storage is in no state, plan, domain XML, log at any level, or error text.
func TestAccVirtualMachine_PasswordsAreNowhere(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "secrecy", "data", acctest.LUN(t, l, true, "secrecy"))
	lun := acctest.LUN(t, l, true, "direct")
	cli := acctest.NewCLI(t, "TF_LOG=TRACE", "TF_LOG_PATH=trace.log", "TF_VAR_password="+l.Target.Password)
	cli.Write("main.tf", acctest.Provider(l, "secrecy")+claimBinding("secrecy", "data", "write-exclusive", "host-a")+fmt.Sprintf(`
variable "password" {
  type      = string
  ephemeral = true
}
resource "virtclaim_volume_binding" "direct" {
  name   = "direct"
  hosts  = ["host-a"]
  source = { iscsi = { portal = %q, iqn = %q, lun = %d, username = %q, password_wo = var.password, password_wo_version = 1 } }
}
`, l.Target.Portal, lun.IQN, lun.Number, l.Target.Username)+machine{
		disks: []string{disk("root", "data", "virtio"), disk("more", "direct", "virtio")}, idle: true,
	}.hcl(l))

	everything := map[string]string{"output of plan": cli.Must("plan", "-out=the.plan", "-no-color")}
	everything["output of apply"] = cli.Must("apply", "-auto-approve", "-no-color", "the.plan")
	everything["plan as JSON"] = cli.Must("show", "-json", "the.plan")
	xml, err := l.Hosts["host-a"].Virsh(context.Background(), "dumpxml", "--security-info", "web")
	if err != nil {
		t.Fatal(err)
	}
	everything["domain XML"] = xml
	// A password that the target refuses leads to an error, which must not contain it either.
	wrong := cli.With("TF_VAR_password=wrong-" + l.Target.Password)
	wrong.Replace("main.tf", "password_wo_version = 1", "password_wo_version = 2")
	everything["output with a wrong password"], _ = wrong.Run("apply", "-auto-approve", "-no-color")
	suspended(t, l.Hosts["host-a"])
	everything["output of destroy"] = cli.Must("destroy", "-auto-approve", "-no-color")

	nowhere(t, cli, l.Target.Password, everything)
}

// nowhere searches for a secret in the output and in all files of a configuration, one of which is a log at trace level.
func nowhere(t *testing.T, cli acctest.CLI, secret string, printed map[string]string) {
	t.Helper()
	everything := maps.Clone(printed)
	files, err := filepath.Glob(filepath.Join(cli.Dir, "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("only %v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		everything[file] = string(text)
	}
	if len(everything[filepath.Join(cli.Dir, "trace.log")]) < 10_000 {
		t.Error("there is hardly a trace log, so the test proves nothing")
	}
	for what, text := range everything {
		if bytes.Contains([]byte(text), []byte(secret)) {
			t.Errorf("the password is in the %s", what)
		}
	}
}
