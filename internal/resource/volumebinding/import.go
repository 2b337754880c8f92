package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ImportState takes <namespace>/<claim>/<name>, and finds the binding in the claim's reservation. The reservation doesn't have the hosts:
// they are null until the next apply sets them from the configuration.
func (r *binding) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ref, name, err := importID(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("%q: %s. Only bindings of claims can be imported. A binding of "+
			"storage that is named directly changes nothing in it: create it again.", req.ID, err))
		return
	}
	if !r.Provider.Ready() {
		resp.Diagnostics.AddError("The binding could not be imported", "The provider's configuration is not known yet.")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	record, err := r.lookUp(ctx, ref, name)
	if err != nil {
		resp.Diagnostics.AddError("The binding could not be imported", err.Error())
		return
	}
	claim := path.Root("source").AtName(claimSource)
	for _, a := range []struct {
		at    path.Path
		value any
	}{
		{path.Root("id"), record.ID},
		{path.Root("name"), record.Name},
		{path.Root("access_mode"), string(record.Mode)},
		{claim.AtName("namespace"), ref.Namespace},
		{claim.AtName("claim_name"), ref.Name},
		{path.Root("reserved"), true},
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, a.at, a.value)...)
	}
	tfvalue.SavePrivate(ctx, resp.Private, privateStateKey, privateStateOf(record), &resp.Diagnostics)
}

// importID splits <namespace>/<claim>/<name>. Names may contain slashes.
func importID(id string) (ref reservation.Ref, name string, err error) {
	ref.Namespace, id, _ = strings.Cut(id, "/")
	ref.Name, name, _ = strings.Cut(id, "/")
	if ref.Namespace == "" || ref.Name == "" || name == "" {
		return ref, name, errors.New("it is not of the shape <namespace>/<claim>/<name>")
	}
	return ref, name, nil
}

// lookUp finds the record of a binding on its claim: this owner's, or of any owner when the provider has none.
func (r *binding) lookUp(ctx context.Context, ref reservation.Ref, name string) (reservation.Record, error) {
	client, err := r.Provider.Cluster()
	if err != nil {
		return reservation.Record{}, err
	}
	claim, err := client.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return reservation.Record{}, err
	}
	var found []reservation.Record
	for _, record := range reservation.Look(claim) {
		if record.Unreadable == nil && record.Name == name && (r.Provider.Owner == "" || record.Owner == r.Provider.Owner) {
			found = append(found, record)
		}
	}
	wanted := fmt.Sprintf("binding %q", name)
	if r.Provider.Owner != "" {
		wanted += fmt.Sprintf(" of owner %q", r.Provider.Owner)
	}
	switch {
	case len(found) == 0:
		return reservation.Record{}, fmt.Errorf("the %s is not reserved for a %s. %s\n\nThere is nothing to import: create the binding, "+
			"which changes nothing on the claim's storage", ref, wanted, listed(claim))
	case len(found) > 1:
		return reservation.Record{}, fmt.Errorf("the %s is reserved for more than one %s. %s\n\nSet the provider's owner to that of "+
			"the one to import, or release the others by hand", ref, wanted, listed(claim))
	case claim.DeletionTimestamp != nil:
		return reservation.Record{}, fmt.Errorf("the %s is being deleted, so nothing can be bound to it any more. %s", ref, listed(claim))
	}
	return found[0], nil
}

// listed lists the holders of a claim, and the commands that release it manually.
func listed(claim *corev1.PersistentVolumeClaim) string {
	holders := reservation.Holders(claim)
	if len(holders) == 0 {
		return "It has no holder."
	}
	text := "It is held by:"
	for _, h := range holders {
		text += fmt.Sprintf("\n- %s", h)
		if !errors.Is(h.Unreadable, newer.Err) {
			text += ", which is released by hand, once no machine uses it, with:\n  " + h.Release
		}
	}
	return text
}

// isAdopted reports whether the hosts were set from the configuration; after an import they are null.
func (m model) isAdopted() bool { return !m.Hosts.IsNull() }

// fillVolume resolves the claim of a binding that was just imported. An error is only a warning, as in any refresh.
func (r *binding) fillVolume(ctx context.Context, state *model, own *privateState, diags *diag.Diagnostics) {
	c := state.claim(ctx, diags)
	if c == nil {
		return
	}
	found, err := r.resolveClaim(ctx, *state, *c, diags)
	if err != nil {
		diags.AddAttributeWarning(sourcePath.AtName(claimSource), "The volume of the imported binding is not known yet",
			fmt.Sprintf("An apply finds it, once what stands against it is mended: %s.", err))
		return
	}
	addWarnings(diags, sourcePath.AtName(claimSource), found.Warnings)
	own.Version = found.Version()
	state.Volume = tfvalue.VolumeObject(state.held(found.Volume, []string{}, state.instance(ctx, nil, *own, diags)), tfvalue.Unknowns{})
	if found.Volume.Images[0].Auth != nil {
		state.Credentials = types.MapValueMust(types.StringType, nil)
	}
}

// hostsOf are the hosts that may have credentials or machines of a binding: those in state or, after an import or a killed update until the
// next apply, all hosts.
func (r *binding) hostsOf(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) []string {
	if state.isAdopted() && !own.Everywhere {
		return state.hostKeys(ctx, diags)
	}
	return r.Provider.Hosts.Keys()
}

// hostsBefore are the hosts that an update may remove from the binding. After an import these are the hosts with its credentials; one that
// does not answer is a warning, because most likely it has nothing of the binding.
func (r *binding) hostsBefore(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) (keys []string) {
	if state.isAdopted() && !own.Everywhere {
		return state.hostKeys(ctx, diags)
	}
	keys = state.hostKeys(ctx, diags)
	for _, key := range r.Provider.Hosts.Keys() {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			continue
		}
		record, err := secret.Get(ctx, h, state.ID.ValueString())
		switch {
		case err == nil && record.Nonce == own.Nonce && !slices.Contains(keys, key):
			keys = append(keys, key)
		case err != nil && !errors.Is(err, host.ErrNotFound) && !errors.Is(err, secret.ErrForeign):
			diags.AddWarning("A host could not be asked",
				fmt.Sprintf("Whether it has the credentials of the binding %s is not known: %s", state.Name.ValueString(), err))
		}
	}
	return keys
}
