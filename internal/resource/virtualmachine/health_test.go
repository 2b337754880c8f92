package virtualmachine

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
)

// A suspended guest can't reach what wait_for names: the apply reports that at once.
func TestVirtualMachine_SuspendedGuestIsNotWaitedFor(t *testing.T) {
	text, err := domainxml.Build(domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", GuestAgent: true, Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &unchanging{stored: text, live: text, state: host.State{Active: true, Reason: "user"}}
	m := model{Host: types.StringValue("host-a"), Name: types.StringValue("web"), Running: types.BoolValue(true)}
	m.WaitFor = types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
		"addresses": types.SetNull(types.StringType), "agent": types.BoolValue(true), "cloud_init": types.BoolNull(), "timeout": types.StringNull(),
	})
	var diags diag.Diagnostics
	m.await(t.Context(), h.manager(), &diags)
	if diags.HasError() || diags.WarningsCount() != 1 || !strings.Contains(diags[0].Detail(), "there was no agent") ||
		!strings.Contains(diags[0].Detail(), "(user), and can't respond") {
		t.Errorf("it says %v", diags)
	}
}

// A machine that is off is only reported as crashed if it has crashed, and had run: one that was turned off shows in the plan.
func TestVirtualMachine_OnlyCrashIsWarnedOfWhenOff(t *testing.T) {
	m := model{Host: types.StringValue("host-a"), Name: types.StringValue("web")}
	for _, c := range []struct {
		reason     string
		ran, warns bool
	}{{host.ReasonCrashed, true, true}, {host.ReasonFailed, true, true}, {host.ReasonCrashed, false, false}, {"destroyed", true, false}} {
		var diags diag.Diagnostics
		m.warnOfHealth(machine.Health{State: host.State{Reason: c.reason}, IsPersistent: true}, c.ran, &diags)
		if (diags.WarningsCount() == 1) != c.warns {
			t.Errorf("%+v: it says %v", c, diags)
		}
		// Terraform shows it after the apply, too, that has started the machine.
		if c.warns && (!strings.Contains(diags[0].Summary(), "web had ") || !strings.Contains(diags[0].Detail(), "was found ")) {
			t.Errorf("%+v: it says that of now: %v", c, diags)
		}
	}
}
