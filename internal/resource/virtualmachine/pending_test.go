package virtualmachine

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// A plan says whether more memory or processors restart the machine, or wait.
func TestVirtualMachine_PlanSaysWhatRestarts(t *testing.T) {
	now := domainxml.Machine{Memory: 1 << 20, MaxMemory: 2 << 20, VCPUs: 2}
	for name, c := range map[string]struct {
		want     domainxml.Machine
		restarts bool
		says     string
	}{
		"within the maximum":     {domainxml.Machine{Memory: 2 << 20, VCPUs: 1}, false, ""},
		"more memory":            {domainxml.Machine{Memory: 3 << 20, VCPUs: 2}, false, "web needs a restart"},
		"more memory, restarted": {domainxml.Machine{Memory: 3 << 20, VCPUs: 2}, true, "web is restarted"},
		"more processors":        {domainxml.Machine{Memory: 1 << 20, VCPUs: 4, MaxVCPUs: 8}, false, "vcpus = 4 exceeds 2"},
	} {
		var diags diag.Diagnostics
		m := model{Name: types.StringValue("web"), AllowRestart: types.BoolValue(c.restarts)}
		m.warnOfRestart(now, c.want, &diags)
		if (len(diags) == 1) != (c.says != "") || len(diags) == 1 && !strings.Contains(diags[0].Summary()+diags[0].Detail(), c.says) {
			t.Errorf("%s: %v", name, diags)
		}
		diags = diag.Diagnostics{diag.NewErrorDiagnostic("refused", "")}
		if m.warnOfRestart(now, c.want, &diags); len(diags) != 1 {
			t.Errorf("%s: it is refused, and %v", name, diags)
		}
	}
}
