// Package volumecontent implements the resource virtclaim_volume_content: an image that is written onto the storage of a binding.
package volumecontent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The default timeouts. An image may be large.
const (
	writeTimeout  = 60 * time.Minute
	readTimeout   = 2 * time.Minute
	deleteTimeout = 10 * time.Minute
)

type volumeContent struct{ providerdata.Resource }

var _ providerdata.Managed = &volumeContent{}

// New creates the resource.
func New() resource.Resource {
	return providerdata.WithIdentity(&volumeContent{providerdata.Resource{TypeName: "volume_content"}},
		providerdata.AtRoot("id", "Id of the content, which can't be imported."))
}

// ImportState refuses imports.
func (r *volumeContent) ImportState(_ context.Context, _ resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resp.Diagnostics.AddError("Contents of volumes can't be imported", "Nothing on a volume says what it was filled from. Without an "+
		"import nothing is lost: a volume that has content is not written to, unless overwrite is set.")
}

// ValidateConfig refuses sources that are invalid by themselves.
func (r *volumeContent) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...); resp.Diagnostics.HasError() {
		return
	}
	config.source(ctx, &resp.Diagnostics).Check(sourcePath, &resp.Diagnostics)
}

// Create fills the volume.
func (r *volumeContent) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...)
	ctx, cancel, ok := r.BeginCreate(ctx, req, &plan, writeTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	overwrite := plan.Overwrite.ValueBool()
	if r.write(ctx, &plan,
		writer{secrets: config.source(ctx, &resp.Diagnostics), overwrite: overwrite, again: overwrite, diags: &resp.Diagnostics}) {
		resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
	}
}

// Read looks for an interrupted write: then the content is not known.
func (r *volumeContent) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	ctx, cancel, ok := r.BeginRead(ctx, req, &state, readTimeout, &resp.Diagnostics)
	defer cancel()
	v, known := state.target(ctx, &resp.Diagnostics)
	if !ok || !known {
		return
	}
	if why := r.isOtherwise(ctx, v, state.InstanceID.ValueString(), &resp.Diagnostics); why != "" {
		resp.Diagnostics.AddAttributeWarning(targetPath, "The volume has not what it was filled with",
			fmt.Sprintf("%s: %s. An apply writes all of it again.",
				v.Images[0].Name, why))
		state.InstanceID = types.StringNull()
	}
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, state)...)
}

// isOtherwise is why the volume has other content than that generation: a host or the claim says that it has only a part of one, or the
// claim that it was filled with another one, by an apply whose state was lost. One that does not answer is a warning.
func (r *volumeContent) isOtherwise(ctx context.Context, v volume.Volume, generation string, diags *diag.Diagnostics) string {
	const isFilling = "writing to it goes on, or was interrupted"
	var failed []error
	c, err := r.claimOf(v)
	if err == nil {
		var is reservation.Content
		is, err = c.read(ctx)
		switch {
		case is.Filling:
			return isFilling
		case is.Generation != "" && generation != "" && is.Generation != generation:
			return "the claim's record says that it was filled with other content"
		}
	}
	failed = append(failed, err)
	for _, key := range v.Images[0].Hosts {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			continue // it was taken out of the provider
		}
		is, err := content.IsFilling(ctx, h, v)
		if is {
			return isFilling
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		diags.AddAttributeWarning(targetPath, "Whether the volume is complete is not known", fmt.Sprintf("%s: %s", v.Images[0].Name, err))
	}
	return ""
}

// Update writes other content, or none if only attributes have changed.
func (r *volumeContent) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, config model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...)
	ctx, cancel, ok := r.BeginUpdate(ctx, req, &plan, &state, writeTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	v, _ := plan.target(ctx, &resp.Diagnostics)
	was, _ := state.target(ctx, &resp.Diagnostics)
	if other, certain := isOther(was, v); other && certain {
		resp.Diagnostics.AddAttributeError(targetPath, "The storage changed during the apply", "What was unknown in the plan is other "+
			"storage. Nothing was written. Plan and apply again: the resource is replaced then.")
		return
	}
	isOtherContent := plan.rewrites(ctx, state, &resp.Diagnostics)
	switch planned := plan.InstanceID; {
	case planned.IsUnknown() && isOtherContent, !planned.IsUnknown() && !planned.Equal(state.InstanceID):
		if r.write(ctx, &plan, writer{secrets: config.source(ctx, &resp.Diagnostics), overwrite: true, diags: &resp.Diagnostics}) {
			resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
		}
		return
	case isOtherContent:
		resp.Diagnostics.AddAttributeError(sourcePath, "The content changed during the apply", "It is other content than in the plan. "+
			"Nothing was written. Plan and apply again.")
		return
	}
	plan.Digest, plan.InstanceID = state.Digest, state.InstanceID
	filled, _, d := tfvalue.VolumeFrom(state.Volume)
	plan.finish(ctx, filled.Capacity)
	resp.Diagnostics.Append(append(d, tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)...)
}

// write fills the volume, and sets what is known of it then.
func (r *volumeContent) write(ctx context.Context, plan *model, w writer) (ok bool) {
	diags := w.diags
	v, _ := plan.target(ctx, diags)
	checkTarget(v, true, diags)
	if diags.HasError() {
		return false
	}
	id := content.FillID(v)
	// After a success, a resource of the former name that is destroyed in the same apply must not remove what is there.
	if !r.Provider.ReserveName(reservedName(v)) {
		diags.AddAttributeError(targetPath, "Two contents of one volume", fmt.Sprintf("Another resource of this configuration fills %s, "+
			"too, or is being destroyed. Remove one of the two. If the resource got another name, say so in a moved block.",
			v.Images[0].Name))
		return false
	}
	defer func() {
		if !ok {
			r.Provider.ReleaseName(reservedName(v))
		}
	}()
	w.volumeContent, w.plan, w.target = r, *plan, v
	is, err := w.fill(ctx)
	if err != nil {
		addWriteError(diags, v, err)
	}
	if diags.HasError() {
		return false
	}
	plan.ID = types.StringValue(id)
	if plan.Digest.IsUnknown() {
		plan.Digest = tfvalue.OrNull(is.Digest)
	}
	if plan.InstanceID.IsUnknown() {
		plan.InstanceID = types.StringValue(is.Generation)
	}
	plan.finish(ctx, w.target.Capacity)
	return true
}

// reservedName is the name by which a process fills storage once. A file of that path is another one on other hosts.
func reservedName(v volume.Volume) string {
	name := "content " + content.FillID(v)
	if top := v.Images[0]; top.Type != "network" {
		name += " of " + strings.Join(slices.Sorted(slices.Values(top.Hosts)), " ")
	}
	return name
}

// finish sets the filled volume.
func (m *model) finish(ctx context.Context, capacity *int64) {
	m.Volume = tfvalue.AsPlanned(ctx, m.Volume, tfvalue.Filled(ctx, m.Target, types.Int64PointerValue(capacity), m.InstanceID))
}

func addWriteError(diags *diag.Diagnostics, v volume.Volume, err error) {
	text := fmt.Sprintf("%s: %s", v.Images[0].Name, err)
	switch {
	case errors.Is(err, content.ErrNotBlank):
		diags.AddAttributeError(targetPath, "The volume has content", text+". Nothing was written. If that is not needed any more, or an "+
			"interrupted apply has filled the volume, set overwrite = true.")
	case errors.Is(err, content.ErrHalfFilled), errors.Is(err, content.ErrFilled):
		diags.AddAttributeError(targetPath, "The volume was not filled", text)
	default:
		diags.AddAttributeError(targetPath, "The volume was not filled", text+"\n\nNothing was written.")
	}
}

// Delete leaves the data, or erases all of the volume.
func (r *volumeContent) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.Provider.Apply()
	var state model
	ctx, cancel, ok := r.BeginDelete(ctx, req, &state, deleteTimeout, &resp.Diagnostics)
	defer cancel()
	v, known := state.target(ctx, &resp.Diagnostics)
	if !ok || !known {
		return
	}
	name := reservedName(v)
	if !r.Provider.ReserveName(name) {
		resp.Diagnostics.AddAttributeWarning(targetPath, "The content is kept", fmt.Sprintf("Another resource of this configuration has "+
			"filled %s, so nothing was erased or removed.", v.Images[0].Name))
		return
	}
	defer r.Provider.ReleaseName(name)
	w := writer{volumeContent: r, plan: state, target: v, overwrite: true, diags: &resp.Diagnostics}
	if err := w.end(ctx); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("erase"), "The content could not be removed",
			fmt.Sprintf("%s: %s", v.Images[0].Name, err))
	}
}
