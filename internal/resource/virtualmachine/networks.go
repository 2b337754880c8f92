package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// warnOfNetworks warns of the host of a new machine if it does not answer, and of networks that new or moved interfaces can't
// have yet. libvirt does not list the bridges of its host as node devices.
func (r *virtualMachine) warnOfNetworks(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	key := plan.Host.ValueString()
	h, err := r.Provider.Hosts.Host(key)
	if err != nil || diags.HasError() {
		return
	}
	if !state.ID.IsNull() && !plan.Host.Equal(state.Host) && !r.Provider.IsApplying() {
		if err := r.Provider.CheckHost(ctx, key, h); err != nil { // the former machine would be destroyed first
			addError(diags, plan, "The machine can't be replaced", fmt.Errorf("%w. The former one stays as it is", err))
			return
		}
	}
	if state.ID.IsNull() {
		r.Provider.WarnOfPrerequisite(ctx, key, h, host.Network, "", path.Root("host"), diags)
	}
	networks := plan.otherNetworks(state)
	for _, interfaceKey := range slices.Sorted(maps.Keys(networks)) {
		at := interfacePath(interfaceKey).AtName("network")
		r.Provider.WarnOfPrerequisite(ctx, key, h, host.Network, networks[interfaceKey], at, diags)
	}
}

// otherNetworks are the networks of the interfaces that are new, or on another network than before.
func (m model) otherNetworks(state model) map[string]string {
	was, networks := state.interfaces(), map[string]string{}
	for key, i := range m.interfaces() {
		if isSet(i.Network) && (!i.Network.Equal(was[key].Network) || !m.Host.Equal(state.Host)) {
			networks[key] = i.Network.ValueString()
		}
	}
	return networks
}
