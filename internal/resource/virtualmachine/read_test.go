package virtualmachine

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// A machine that does not reach wait_for in time exists all the same: after an error Terraform would destroy it.
func TestVirtualMachine_WaitForTimeoutIsWarning(t *testing.T) {
	text, err := domainxml.Build(domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", GuestAgent: true, Metadata: domainxml.Metadata{Phase: domainxml.Ready},
		Interfaces: map[string]domainxml.Interface{"lan": {User: true, Model: "virtio", MAC: "52:54:00:00:00:01"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := model{
		Host: types.StringValue("host-a"), Name: types.StringValue("web"), Running: types.BoolValue(true),
		WaitFor: types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
			"addresses": types.SetValueMust(types.StringType, []attr.Value{types.StringValue("lan")}),
			"agent":     types.BoolValue(true), "cloud_init": types.BoolNull(), "timeout": types.StringValue("1s"),
		}),
	}
	for name, c := range map[string]struct {
		active, interrupted bool
		want                string
	}{
		"nothing comes": {true, false, "within 1s there was no address at interface lan, no agent"}, "it is off": {false, false, "it has gone off"},
		"interrupted": {true, true, "until the interruption there was no address"},
	} {
		var diags diag.Diagnostics
		ctx, cancel := context.WithCancel(t.Context())
		if c.interrupted {
			cancel()
		}
		h := &unchanging{stored: text, live: text, state: host.State{Active: c.active, Responsive: true}}
		m.await(ctx, h.manager(), &diags)
		cancel()
		if diags.HasError() || diags.WarningsCount() != 1 || !strings.Contains(diags[0].Detail(), c.want) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// Devices that were attached to or detached from a running machine manually are in state, and so in the next plan.
func TestVirtualMachine_ReadShowsLiveDevices(t *testing.T) {
	is := domainxml.Machine{
		Name: "web", VCPUs: 2, Memory: 131072, DomainType: "qemu", State: "paused", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	var m model
	m.read(is, true)
	is.Drift = domainxml.Drift{Scale: domainxml.Scale{VCPUs: 1, Memory: 65536}}
	m.read(is, false)
	if vcpus := m.CPU.Attributes()["vcpus"]; !vcpus.Equal(types.Int64Value(1)) || m.Memory.ValueString() != "64Mi" ||
		m.Running.ValueBool() || m.State.ValueString() != "paused" {
		t.Errorf("it has %s processors and %s, runs %s, is %s", vcpus, m.Memory, m.Running, m.State)
	}
}

// If the title of the running machine or of its definition was changed, a refresh shows the changed one.
func TestVirtualMachine_ReadShowsLiveTitle(t *testing.T) {
	live, other := "web", "theirs"
	for name, c := range map[string]struct {
		stored string
		live   *string
		want   string
	}{
		"neither": {"web", nil, "web"}, "both": {"theirs", nil, "theirs"}, "the definition": {"theirs", &live, "theirs"},
		"the machine": {"web", &other, "theirs"},
	} {
		m := model{Title: types.StringValue("web")}
		is := domainxml.Machine{Title: c.stored}
		is.Drift.Title = c.live
		if readNames(&m, is); m.Title.ValueString() != c.want {
			t.Errorf("%s: it shows %s", name, m.Title)
		}
	}
}
