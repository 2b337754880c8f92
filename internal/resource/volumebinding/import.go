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

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ImportState takes <namespace>/<claim>/<name>, and finds the binding in the claim's reservation. The reservation doesn't have the hosts:
// Read finds them.
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
	own := privateStateOf(record)
	own.Imported, own.Everywhere = true, true
	tfvalue.SavePrivate(ctx, resp.Private, privateStateKey, own, &resp.Diagnostics)
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

// isAdopted reports whether a configuration has set the hosts and the options of the source.
func (m model) isAdopted(own privateState) bool { return !m.Hosts.IsNull() && !own.Imported }

// fillHosts sets the hosts of a binding that was just imported, and the options of its source, from what the hosts have of it: its
// credentials, and machines. One of which no host has anything may be used on all. While a host does not answer they stay null: without
// the one that it may be, its machine would lose the volume.
func (r *binding) fillHosts(ctx context.Context, state *model, own privateState, diags *diag.Diagnostics) {
	var found []string
	for _, key := range r.Provider.Hosts.Keys() {
		images, has, err := r.recordsOn(ctx, key, *state, own)
		if err != nil {
			diags.AddWarning("The hosts of the imported binding are not known", fmt.Sprintf(
				"Whether host %s is one of those of binding %s is not known: %s. Import it when all answer, or set hosts yourself.", key,
				state.Name.ValueString(), err))
			return
		}
		if has || len(images) > 0 {
			found = append(found, key)
		}
		for _, i := range images {
			found = append(found, i.Hosts...)
			state.setOption(ctx, "attach", strings.HasPrefix(i.Name, claim.AttachedPrefix))
			state.setOption(ctx, "shared_folder", i.IsFolder())
		}
	}
	configured := r.Provider.Hosts.Keys()
	found = slices.DeleteFunc(found, func(key string) bool { return !slices.Contains(configured, key) })
	if len(found) == 0 {
		found = configured
	}
	slices.Sort(found)
	var d diag.Diagnostics
	state.Hosts, d = types.SetValueFrom(ctx, types.StringType, slices.Compact(found))
	diags.Append(d...)
}

// recordsOn are the images of the binding that the machines of a host have, and whether the host has its credentials.
func (r *binding) recordsOn(ctx context.Context, key string, state model, own privateState) (images []volume.Image, has bool, err error) {
	h, err := r.Provider.Hosts.Host(key)
	if err != nil {
		return nil, false, err
	}
	record, err := secret.Get(ctx, h, state.ID.ValueString())
	if err != nil && !errors.Is(err, host.ErrNotFound) && !errors.Is(err, secret.ErrForeign) {
		return nil, false, err
	}
	has = err == nil && record.Nonce == own.Nonce
	domains, err := guard.List(ctx, h)
	for _, d := range domains {
		for _, from := range []*domainxml.Domain{d.Live, d.Saved, d.Stored} {
			if from == nil {
				continue
			}
			for _, a := range from.Attached() {
				if is := a.Volume.Images; len(is) > 0 && volume.ParseBinding(is[0].Binding).ID == state.ID.ValueString() {
					images = append(images, is[0])
				}
			}
		}
	}
	return images, has, err
}

// setOption sets an option of the claim of a binding that was just imported.
func (m *model) setOption(ctx context.Context, name string, is bool) {
	if c, ok := m.child(claimSource); ok && is {
		m.Source = tfvalue.With(ctx, m.Source, claimSource, tfvalue.With(ctx, c, name, types.BoolValue(true)))
	}
}

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
	is := state.held(found.Volume, state.hostKeys(ctx, diags), state.instance(ctx, nil, *own, diags))
	state.Volume = tfvalue.VolumeObject(is, tfvalue.Unknowns{})
	if found.Volume.Images[0].Auth != nil {
		state.Credentials = types.MapValueMust(types.StringType, nil)
	}
}

// hostsOf are the hosts that may have credentials or machines of a binding: those in state or, after an import or a killed update until the
// next apply, all hosts.
func (r *binding) hostsOf(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) []string {
	if !own.Everywhere && !state.Hosts.IsNull() {
		return state.hostKeys(ctx, diags)
	}
	return r.Provider.Hosts.Keys()
}

// hostsBefore are the hosts that an update may remove from the binding. After an import these are the hosts with its credentials; one that
// does not answer is a warning, because most likely it has nothing of the binding.
func (r *binding) hostsBefore(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) (keys []string) {
	if !own.Everywhere && !state.Hosts.IsNull() {
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
