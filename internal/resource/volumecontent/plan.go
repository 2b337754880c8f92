package volumecontent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ModifyPlan plans what is known of the filled volume, and warns of what is lost.
func (r *volumeContent) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		var state model
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
		warnOfErasing(ctx, state, &resp.Diagnostics)
		return
	}
	var plan, state model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...)
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	v, known := plan.target(ctx, &resp.Diagnostics)
	raw, err := plan.Target.ToTerraformValue(ctx)
	if wholly := err == nil && raw.IsFullyKnown(); wholly || known {
		checkTarget(v, wholly, &resp.Diagnostics)
	}
	if r.Provider.Ready() {
		r.checkVia(ctx, plan, v, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.source(ctx, &resp.Diagnostics).CheckFile(ctx, sourcePath, specOf(v), &resp.Diagnostics)
		plan.planNew(ctx, v, known, &resp.Diagnostics)
	} else if plan.planChange(ctx, state, v, known, resp) && r.Provider.Ready() && !r.Provider.IsApplying() {
		r.judge(ctx, req.Config, plan, v, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.Plan.Schema, &resp.Plan.Raw, plan)...)
}

// specOf is the specification of an image for a volume, as far as it is known.
func specOf(v volume.Volume) content.Spec {
	spec := content.Spec{IsFixed: true}
	if v.Capacity != nil {
		spec.Capacity = *v.Capacity
	}
	return spec
}

// judge refuses to write what the apply would refuse: a resource that is replaced, or a pod, would have lost the old content then.
func (r *volumeContent) judge(ctx context.Context, config tfsdk.Config, plan model, v volume.Volume, diags *diag.Diagnostics) {
	if len(v.Images) == 0 || !plan.isSourceKnown(ctx) || plan.kind() == "volume" || diags.HasError() {
		return
	}
	var with model
	diags.Append(tfvalue.Get(ctx, config.Schema, config.Raw, &with)...)
	key := cmp.Or(plan.via(ctx, diags).Host.ValueString(), v.Images[0].Hosts[0])
	h, err := r.Provider.Hosts.Host(key)
	if err == nil {
		err = with.source(ctx, diags).Judge(ctx, &r.Provider.Tags, h, specOf(v))
	}
	if err != nil {
		diags.AddAttributeError(sourcePath, "The volume can't be filled",
			fmt.Sprintf("%s: %s.\n\nNothing was written. To destroy it all the same: terraform destroy -refresh=false.", v.Images[0].Name,
				err))
	}
}

// planNew plans a volume that is going to be written to.
func (m *model) planNew(ctx context.Context, v volume.Volume, known bool, diags *diag.Diagnostics) {
	if known {
		m.ID = types.StringValue(content.FillID(v))
	}
	if known && m.Overwrite.ValueBool() {
		diags.AddAttributeWarning(path.Root("overwrite"), overwritten(v),
			fmt.Sprintf("Whatever is on %s is lost: overwrite is set.", v.Images[0].Name))
	}
	if m.planContent(ctx, diags); m.kind() == "file" { // it may be created or changed in the same apply
		m.Digest, m.InstanceID = types.StringUnknown(), types.StringUnknown()
	}
	m.planVolume(ctx, v.Capacity)
}

// planContent plans the digest and the generation of content that is going to be written.
func (m *model) planContent(ctx context.Context, diags *diag.Diagnostics) {
	m.Digest, m.InstanceID = types.StringUnknown(), types.StringUnknown()
	if m.isSourceKnown(ctx) {
		m.Digest = m.source(ctx, diags).PlanDigest(ctx, sourcePath, diags)
	}
	if v, known := m.target(ctx, diags); known && m.Digest.ValueString() != "" {
		m.InstanceID = types.StringValue(generationOf(v, m.Digest.ValueString(), m.source(ctx, diags).file()))
	}
}

// planVolume plans the filled volume. Its capacity is measured if the target does not say it.
func (m *model) planVolume(ctx context.Context, capacity *int64) {
	bytes := types.Int64Unknown()
	if capacity != nil {
		bytes = types.Int64Value(*capacity)
	}
	m.Volume = tfvalue.Filled(ctx, m.Target, bytes, m.InstanceID)
}

// planChange plans whether other storage is filled, or the volume is written again, and reports whether that writes content that was not
// written before.
func (m *model) planChange(ctx context.Context, state model, v volume.Volume, known bool, resp *resource.ModifyPlanResponse) (writes bool) {
	was, _ := state.target(ctx, &resp.Diagnostics)
	other, certain := isOther(was, v)
	if known && other && certain {
		resp.RequiresReplace = append(resp.RequiresReplace, targetPath)
		warnOfErasing(ctx, state, &resp.Diagnostics)
		m.ID = types.StringUnknown()
		m.planNew(ctx, v, known, &resp.Diagnostics)
		return true
	}
	if known && !certain {
		resp.Diagnostics.AddAttributeWarning(targetPath, "The storage has another address", fmt.Sprintf("%s has no server in common with "+
			"the storage that was filled. It is taken for the same volume, under another address, and is not written to. If it is "+
			"another one, fill it by another resource, or replace this one (-replace).", v.Images[0].Name))
	}
	if !m.rewrites(ctx, state, &resp.Diagnostics) {
		if m.Digest, m.InstanceID = state.Digest, state.InstanceID; !m.isSourceKnown(ctx) {
			m.Digest, m.InstanceID = types.StringUnknown(), types.StringUnknown()
			resp.Diagnostics.AddAttributeWarning(sourcePath, "The volume may be overwritten", fmt.Sprintf("The source is known in the "+
				"apply. If that is other content, it is written onto %s: all that was written to it since it was filled is lost then.",
				was.Images[0].Name))
		}
		if is, ok, d := tfvalue.VolumeFrom(state.Volume); ok && v.Capacity == nil {
			resp.Diagnostics.Append(d...)
			v.Capacity = is.Capacity
		}
		m.planVolume(ctx, v.Capacity)
		return false
	}
	resp.Diagnostics.AddAttributeWarning(sourcePath, overwritten(was), fmt.Sprintf("Other content is written onto %s: all that was "+
		"written to it since it was filled is lost.", was.Images[0].Name))
	m.planContent(ctx, &resp.Diagnostics)
	m.planVolume(ctx, v.Capacity)
	return true
}

// overwritten is the summary of a warning; of several with one summary Terraform shows only the first.
func overwritten(v volume.Volume) string {
	return fmt.Sprintf("The volume %s is overwritten", v.Images[0].Name)
}

// isOther reports whether two volumes are different storage, and whether that is clear: storage may have got another address.
func isOther(was, is volume.Volume) (other, certain bool) {
	if len(was.Images) == 0 || len(is.Images) == 0 || is.Images[0].Name == "" {
		return false, true
	}
	a, b := was.Images[0], is.Images[0]
	a.Generation, b.Generation = "", ""
	same, certain := volume.SameMaster(a, b)
	if same && b.Protocol == "rbd" { // an image may be copied to another cluster, but is filled in one
		certain = volume.SameStorage(a, b)
	}
	if !certain && a.Binding == b.Binding && volume.ParseBinding(a.Binding).Claim != "" {
		return false, true // the claim is the volume
	}
	return !same, certain
}

// rewrites reports whether the configured content is known to be other content than was written, or what was written is not complete.
func (m model) rewrites(ctx context.Context, state model, diags *diag.Diagnostics) bool {
	switch {
	case state.InstanceID.IsNull():
		return true
	case m.kind() == "" || state.kind() == "":
		return false
	}
	is, was := m.source(ctx, diags), state.source(ctx, diags)
	if is.IsElsewhere(was.Source) {
		return false
	}
	if m.isSourceKnown(ctx) { // the same content may come from elsewhere
		if digest := is.PlanDigest(ctx, sourcePath, diags).ValueString(); digest != "" && state.Digest.ValueString() != "" {
			return digest != state.Digest.ValueString() || is.file() != was.file()
		}
	}
	if m.kind() != state.kind() {
		return true
	}
	if master, known := m.master(ctx, diags); known {
		before, _ := state.master(ctx, diags)
		same, certain := volume.SameMaster(before.Images[0], master.Images[0])
		return certain && !same
	}
	return len(is.OtherContent(was.Source, state.Digest, sourcePath)) > 0
}

// checkTarget refuses what can't be filled. wholly is whether all of the volume is known.
func checkTarget(v volume.Volume, wholly bool, diags *diag.Diagnostics) {
	if len(v.Images) == 0 {
		diags.AddAttributeError(targetPath, "No volume", "The target is null, or has no image. Take it from a virtclaim_volume_binding.")
		return
	}
	var why string
	top := v.Images[0]
	switch {
	case len(v.Images) > 1 || wholly && top.IsDisk():
		why = "it is a disk of a host. Give the disk its content by its own source"
	case top.Protocol == "http" || top.Protocol == "https":
		why = "storage on a web server can only be read"
	case top.AccessMode != volume.WriteExclusive:
		why = fmt.Sprintf("its binding is %s, and only a write-exclusive one keeps others from the volume. Fill it by a binding of its "+
			"own, and bind it %[1]s afterwards", top.AccessMode)
	case top.Format != "raw":
		why = fmt.Sprintf("it is an image in the format %s, and only raw volumes are filled", top.Format)
	default:
		return
	}
	diags.AddAttributeError(targetPath, "The volume can't be filled", fmt.Sprintf("%s: %s.", top.Name, why))
}

// checkVia refuses a host that can't write to the volume, and a usage type that it does not have.
func (r *volumeContent) checkVia(ctx context.Context, plan model, v volume.Volume, diags *diag.Diagnostics) {
	via := plan.via(ctx, diags)
	if via.pod(ctx, diags) != nil {
		r.checkPod(plan, v, plan.source(ctx, diags), diags)
		return
	}
	key := via.Host.ValueString()
	if key == "" {
		return
	}
	if _, err := r.Provider.Hosts.Host(key); err != nil {
		diags.AddAttributeError(path.Root("via").AtName("host"), "Unknown host", err.Error())
		return
	}
	checkHost(v, key, diags)
	if usage := via.UsageType.ValueString(); usage != "" {
		if err := r.Provider.UsageTypes(key).Check(ctx, usage); err != nil {
			diags.AddAttributeError(path.Root("via").AtName("usage_type"), "Unknown usage type", err.Error())
		}
	}
}

// warnOfErasing warns of the data that a destroy removes.
func warnOfErasing(ctx context.Context, state model, diags *diag.Diagnostics) {
	if v, known := state.target(ctx, diags); known && state.Erase.ValueBool() {
		diags.AddAttributeWarning(path.Root("erase"), fmt.Sprintf("The volume %s is erased", v.Images[0].Name),
			fmt.Sprintf("Destroying the content of %s erases all that is on it.",
				v.Images[0].Name))
	}
}
