//go:build acc

package volume

import (
	"net/http"
	"os/exec"
	"regexp"
	"testing"
)

// Initiators that log in can do with a provisioned volume what libiscsi's tests of writes ask for, and others can't.
func TestAccProvision_Conformance(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Gi", "one")
	at := p.iscsi + "/iqn.2026-01.io.virtclaim:provision/0"
	passed := regexp.MustCompile(`(?m)^ +tests +(\d+) +(\d+) +(\d+) +0 +0$`)
	for _, family := range []string{"Read10", "Write10", "Write16", "WriteSame16", "Unmap", "iSCSIdatasn"} {
		out, err := exec.CommandContext(t.Context(), "iscsi-test-cu", "--dataloss", "--fail", "--test=ALL."+family, "iscsi://hosts%secret-of-hosts@"+at).CombinedOutput()
		if all := passed.FindSubmatch(out); err != nil || all == nil || string(all[1]) != string(all[3]) || string(all[1]) == "0" {
			t.Errorf("%s: %v\n%s", family, err, out[:min(len(out), 4000)])
		}
	}
	for _, login := range []string{"", "hosts%guess@"} {
		if out, err := exec.CommandContext(t.Context(), "iscsi-inq", "iscsi://"+login+at).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", login, out)
		}
	}
}
