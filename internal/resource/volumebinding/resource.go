// Package volumebinding implements the resource virtclaim_volume_binding: the location of a volume, its access mode, and its hosts.
package volumebinding

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The default timeouts. A claim may have to be provisioned during create and update.
const (
	createTimeout = 10 * time.Minute
	readTimeout   = 2 * time.Minute
	updateTimeout = 10 * time.Minute
	deleteTimeout = 5 * time.Minute
)

type binding struct{ providerdata.Resource }

var _ providerdata.Managed = &binding{}

// New creates the resource.
func New() resource.Resource {
	claim := sourcePath.AtName(claimSource)
	return providerdata.WithIdentity(&binding{providerdata.Resource{TypeName: "volume_binding"}},
		providerdata.Part{Name: "namespace", At: claim.AtName("namespace"), Optional: true, Description: "Namespace of the claim."},
		providerdata.Part{Name: "claim_name", At: claim.AtName("claim_name"), Optional: true, Description: "Name of the claim."},
		providerdata.AtRoot("name", "Name of the binding."))
}

// Read refreshes the volume and the credentials on the hosts. It never removes the binding from state: its secrets are still on the hosts,
// and only a destroy or another source ends it.
func (r *binding) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	ctx, cancel, ok := r.BeginRead(ctx, req, &state, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	own := r.readPrivateState(ctx, state, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	source := state.Source
	if state.dynamic(ctx, &resp.Diagnostics) != nil {
		if r.refreshDynamic(ctx, state, &own, &resp.Diagnostics); resp.Diagnostics.HasError() {
			return
		}
		state = state.answered(ctx, own, &resp.Diagnostics)
	}
	if state.Hosts.IsNull() {
		own.Imported, own.Everywhere = true, true // also for a version that left them so
		r.fillHosts(ctx, &state, own, &resp.Diagnostics)
		source = state.Source
		r.fillVolume(ctx, &state, &own, &resp.Diagnostics)
	} else if !r.refreshVolume(ctx, &state, &own, &resp.Diagnostics) {
		return
	}
	r.refreshReservation(ctx, &state, own, &resp.Diagnostics)
	r.refreshPods(ctx, state, &resp.Diagnostics)
	r.refreshAttached(ctx, &state, &resp.Diagnostics)
	r.refreshCredentials(ctx, &state, own, &resp.Diagnostics)
	state.Source = source
	tfvalue.SavePrivate(ctx, resp.Private, privateStateKey, own, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, state)...)
}

// checkIdentity refuses to bind other storage than the planned one.
func checkIdentity(expected types.Object, actual volume.Volume, diags *diag.Diagnostics) bool {
	before, known, d := tfvalue.VolumeFrom(expected)
	if diags.Append(d...); diags.HasError() {
		return false
	}
	if known && !sameUnit(before.Images[0], actual.Images[0]) {
		diags.AddAttributeError(path.Root("volume"), "The storage changed during the apply",
			fmt.Sprintf("It was %s in the plan, but the source now leads to %s. Nothing was changed. "+
				"Plan and apply again if that is what you want.", before.Images[0].Name, actual.Images[0].Name))
		return false
	}
	if known && before.Images[0].Format != actual.Images[0].Format {
		diags.AddAttributeError(path.Root("volume"), "The format changed during the apply",
			fmt.Sprintf("%s was %s in the plan, and is to be %s now. Nothing was changed. Plan and apply again if that is what you want.",
				actual.Images[0].Name, before.Images[0].Format, actual.Images[0].Format))
		return false
	}
	return true
}

// sameUnit reports whether two images are known to be the same storage, whatever hosts or servers it is opened with, and whatever its
// content is: new hosts or monitors don't make it other storage.
func sameUnit(a, b volume.Image) bool {
	a.Hosts, b.Hosts, a.Generation, b.Generation = nil, nil, "", ""
	same, known := volume.SameMaster(a, b)
	return same && known
}

// finish sets the computed attributes.
func (m *model) finish(ctx context.Context, actual volume.Volume, versions map[string]string, diags *diag.Diagnostics) {
	if len(actual.Images) == 0 { // it was never made
		m.Volume, m.Credentials = types.ObjectNull(tfvalue.VolumeTypes), types.MapNull(types.StringType)
		m.Reserved, m.Attached = types.BoolNull(), types.BoolNull()
		return
	}
	m.Volume = tfvalue.AsPlanned(ctx, m.Volume, tfvalue.VolumeObject(actual, tfvalue.Unknowns{}))
	m.Credentials = types.MapNull(types.StringType)
	if actual.Images[0].Auth != nil {
		var d diag.Diagnostics
		m.Credentials, d = types.MapValueFrom(ctx, types.StringType, versions)
		diags.Append(d...)
	}
}
