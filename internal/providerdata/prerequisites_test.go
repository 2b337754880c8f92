package providerdata_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
)

// having is a host with the pools and networks of that presence; it counts questions.
type having struct {
	silent, unknown error
	presence        host.Presence
	asked           int
}

func (h *having) CheckConnection(context.Context) error {
	h.asked++
	return h.silent
}

func (h *having) Presence(context.Context, host.Kind, string) (host.Presence, error) {
	h.asked++
	return h.presence, h.unknown
}

func TestData_WarnOfPrerequisite(t *testing.T) {
	failed := errors.New("no route")
	for name, c := range map[string]struct {
		host            having
		kind            host.Kind
		summary, detail string
		asked           int
	}{
		"missing pool":     {having{presence: host.Missing}, host.StoragePool, `Host a has no storage pool "x"`, "virsh pool-list --all", 2},
		"inactive pool":    {having{presence: host.Inactive}, host.StoragePool, `The storage pool "x" of host a is not active`, "virsh pool-start 'x'", 2},
		"missing network":  {having{presence: host.Missing}, host.Network, `Host a has no network "x"`, "virsh net-list --all", 2},
		"inactive network": {having{presence: host.Inactive}, host.Network, `The network "x" of host a is not active`, "virsh net-start 'x'", 2},
		"active":           {having{presence: host.Active}, host.Network, "", "", 2},
		"not known":        {having{unknown: failed, presence: host.Inactive}, host.Network, "", "", 2},
		"silent":           {having{silent: failed}, host.StoragePool, "Host a does not answer", "no route", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := providerdata.New("", nil, nil)
			for range 2 { // the host is asked once
				var diags diag.Diagnostics
				b.WarnOfPrerequisite(t.Context(), "a", &c.host, c.kind, "x", path.Root("at"), &diags)
				if diags.HasError() || len(diags) > 1 || len(diags) == 1 != (c.summary != "") {
					t.Fatal(diags)
				}
				if len(diags) == 1 && (diags[0].Summary() != c.summary || !strings.Contains(diags[0].Detail(), c.detail) || !strings.Contains(diags[0].Detail(), "apply fails")) {
					t.Error(diags)
				}
			}
			b.WarnOfPrerequisite(t.Context(), "a", &c.host, c.kind, "", path.Root("at"), &diag.Diagnostics{})
			if c.host.asked != c.asked {
				t.Errorf("the host was asked %d times", c.host.asked)
			}
		})
	}
}

// What an apply needs, another resource of it may have made since.
func TestData_WarnOfPrerequisite_NotDuringApply(t *testing.T) {
	b, h, diags := providerdata.New("", nil, nil), having{presence: host.Missing}, diag.Diagnostics{}
	b.Apply()
	b.WarnOfPrerequisite(t.Context(), "a", &h, host.StoragePool, "x", path.Root("at"), &diags)
	if len(diags) > 0 || h.asked > 0 {
		t.Errorf("asked %d times: %v", h.asked, diags)
	}
}
