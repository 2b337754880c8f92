//go:build acc

package volumebinding_test

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A machine that was migrated outside of Terraform to a host that is not the binding's still writes to the claim, which must not be
// released.
func TestAccVolumeBinding_MachineMigrated(t *testing.T) {
	l := acctest.Lab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	acctest.Claim(t, l, "migrated", "data", acctest.LUN(t, l, false, ""))
	console := acctest.NewConsole(t)
	cli := configured(t, l, "migrated", binding(fromClaim("migrated", "data"), "", "host-a")+web(l, console))
	cli.Must("apply", "-auto-approve")
	xml := acctest.Must(a.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)
	acctest.Must(a.Virsh(t.Context(), "destroy", "web"))(t)
	if err := b.DefineXML(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	acctest.Must(b.Virsh(t.Context(), "start", "web"))(t)
	out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data, "-target="+data) // the plan of the machine would fail
	if err == nil {
		t.Error("the claim was released")
	}
	says(t, out, "The binding could not be removed", "was migrated: host host-b runs it")
	heldBy(t, l, "migrated", "data", "migrated/data write-exclusive")
	acctest.Must(a.Virsh(t.Context(), "undefine", "web"))(t)
	acctest.Must(b.Virsh(t.Context(), "destroy", "web"))(t)
	acctest.Must(b.Virsh(t.Context(), "undefine", "web"))(t)
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "migrated", "data")
}
