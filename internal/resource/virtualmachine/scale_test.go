package virtualmachine

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// After an interruption between the persistent definition and the guest, a refresh shows neither of both values, so that going forward and
// back are both an update.
func TestScaled_InterruptedIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		said, stored, runs uint
		shown              uint // 0 is null
	}{
		"as it is":                    {said: 2, stored: 2, shown: 2},
		"the guest was given other":   {said: 2, stored: 2, runs: 1, shown: 1},
		"the definition was given":    {said: 2, stored: 3, shown: 3},
		"interrupted":                 {said: 2, stored: 3, runs: 2},
		"both were given other":       {said: 2, stored: 4, runs: 3},
		"interrupted, and refreshed":  {stored: 3, runs: 2},
		"all is done, and was unseen": {stored: 3, shown: 3},
	} {
		m := model{ForceStop: types.BoolValue(false), CPU: types.ObjectValueMust(cpuTypes, map[string]attr.Value{
			"vcpus": numberOrNull(c.said), "max_vcpus": types.Int64Value(4), "mode": types.StringNull(), "model": types.StringNull(),
			"topology": types.ObjectNull(topologyTypes), "features": noTexts, "pin": noTexts,
			"emulator_pin": types.StringNull(), "shares": types.Int64Null(), "period": types.Int64Null(), "quota": types.Int64Null(),
		})}
		if c.said != 0 {
			m.Memory = tfvalue.QuantityOfKiB(c.said << 20)
		}
		is := domainxml.Machine{VCPUs: c.stored, Memory: c.stored << 20, Drift: domainxml.Drift{Scale: domainxml.Scale{VCPUs: c.runs, Memory: c.runs << 20}}}
		readMemory(&m, is)
		readCPU(&m, is)
		memory, _ := m.Memory.KiB()
		if vcpus := fields(m.CPU.Attributes()).number("vcpus"); memory != c.shown<<20 || vcpus != c.shown || m.Memory.IsNull() != (c.shown == 0) {
			t.Errorf("%s: it shows %d processors and %s, want %d", name, vcpus, m.Memory, c.shown)
		}
	}
}

func TestScaled_ImportShowsDefinition(t *testing.T) {
	var m model
	is := domainxml.Machine{VCPUs: 2, Memory: 2 << 20, Drift: domainxml.Drift{Scale: domainxml.Scale{VCPUs: 1, Memory: 1 << 20}}}
	readMemory(&m, is)
	readCPU(&m, is)
	if vcpus := fields(m.CPU.Attributes()).number("vcpus"); vcpus != 2 || m.Memory.ValueString() != "2Gi" {
		t.Errorf("it shows %d processors and %s", vcpus, m.Memory)
	}
}
