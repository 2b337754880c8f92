//go:build acc

package virtualmachine_test

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What a program prints is in a file of its host, which virtlogd rotates: no line is lost, and each has its time.
func TestAccVirtualMachine_RunLogRotates(t *testing.T) {
	l := acctest.Lab(t)
	host := acctest.Must(l.DefaultConfigHost(t.Context()))(t)
	onHost, here, err := host.AddConsole("rotated.log")
	if err != nil {
		t.Fatal(err)
	}
	const script = `fill=$(/bin/busybox printf '%080d' 0); row=0; until [ $row = 25000 ]; do row=$((row+1)); echo "row $row $fill"; done; exec /bin/busybox sleep 1000`
	config := strings.NewReplacer(`"host-a"`, `"host-c"`, strconv.Quote(here), strconv.Quote(onHost)).
		Replace(runnable(t, l, script, nil) + runs(acctest.ConsoleAt(here), "timestamps = true\n    stop_timeout = 1", ""))
	provider := strings.Replace(acctest.Provider(l, "rotated"), "hosts = {",
		fmt.Sprintf("hosts = {\n    host-c = { uri = %q, storage = { fast = \"ssd\" } }", host.URI), 1)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", provider+config)
	cli.Must("apply", "-auto-approve")
	acctest.ConsoleAt(here).Await(t, "row 25000 ")

	files := strings.Fields(acctest.Must(host.Run(t.Context(), fmt.Sprintf("cd %s; stat --format %%n:%%s rotated.log*", path.Dir(onHost))))(t))
	if len(files) != 2 || !strings.HasPrefix(files[1], "rotated.log.0:2") {
		t.Errorf("there is %q", files)
	}
	whole := `^[0-9-]{10}T[0-9:.]{12}Z row [0-9]+ 0{80}$`
	count := fmt.Sprintf("cd %s; cat rotated.log.0 rotated.log | tr -d '\\r' | grep -E '%s' | cut -d ' ' -f 3 | uniq | wc -l", path.Dir(onHost), whole)
	if rows := strings.TrimSpace(acctest.Must(host.Run(t.Context(), count))(t)); rows != "25000" {
		t.Errorf("%s of 25000 rows are there", rows)
	}
	cli.Must("destroy", "-auto-approve")
}
