package virtualmachine

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// After an interruption between the persistent definition and the guest, a refresh shows neither of both values, so that going forward and
// back are both an update.
func TestScale_InterruptedIsSeen(t *testing.T) {
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
			"topology": types.ObjectNull(topologyTypes),
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

func TestScale_ImportShowsDefinition(t *testing.T) {
	var m model
	is := domainxml.Machine{VCPUs: 2, Memory: 2 << 20, Drift: domainxml.Drift{Scale: domainxml.Scale{VCPUs: 1, Memory: 1 << 20}}}
	readMemory(&m, is)
	readCPU(&m, is)
	if vcpus := fields(m.CPU.Attributes()).number("vcpus"); vcpus != 2 || m.Memory.ValueString() != "2Gi" {
		t.Errorf("it shows %d processors and %s", vcpus, m.Memory)
	}
}

// ballooning is a host whose domain has another live definition a moment later.
type ballooning struct {
	busy
	later string
}

func (h *ballooning) MemoryChanges(_ context.Context, _ string, other func(string) (bool, error)) (bool, error) {
	return other(h.later)
}

// While a guest boots, its balloon takes the memory that it does not have; no other change is shown then, and none is pending.
func TestScale_ChangingBalloonIsNotDrift(t *testing.T) {
	is := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 1 << 20, MaxMemory: 4 << 20, DomainType: "qemu", Type: "pc", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	with := func(mebibytes uint) string {
		m := is
		m.Memory = mebibytes << 10
		text, err := domainxml.Build(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct{ live, later, want uint }{
		"it changes": {2380, 2000, 0}, "it is there": {2380, 1024, 0}, "it stays": {2380, 2380, 2380 << 10}, "it is taken more": {512, 512, 512 << 10},
	} {
		h := &ballooning{busy{leftOver{stubborn{oneDomain: oneDomain{stored: with(1024)}, live: with(c.live)}, true}}, with(c.later)}
		m := manager{log: quiet, host: h}
		got, _, err := m.observe(t.Context(), "")
		if err == nil {
			err = m.ignoreChangingMemory(t.Context(), "", &got.Drift)
		}
		if err != nil || got.Drift.Memory != c.want || len(got.Pending) != 0 {
			t.Errorf("%s: %d KiB drifted and %v is pending, %v", name, got.Drift.Memory, got.Pending, err)
		}
	}
}
