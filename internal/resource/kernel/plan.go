package kernel

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/initramfs"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ValidateConfig refuses sources that are invalid by themselves.
func (r *kernel) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...); resp.Diagnostics.HasError() {
		return
	}
	s := config.source(ctx, &resp.Diagnostics)
	s.files().Check(sourcePath, &resp.Diagnostics)
	if s.Container != nil {
		s.Container.Check(sourcePath.AtName(fromContainer), &resp.Diagnostics)
	}
}

// ModifyPlan refuses an unknown host or usage type, and plans what another command line or source leads to.
func (r *kernel) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	tfvalue.CheckReserved(req, resp, "name", "name_prefix")
	r.Provider.PlanPlace(ctx, req, plan.Host, &plan.UsageType, &resp.Diagnostics)
	if req.State.Raw.IsNull() {
		if r.Provider.Ready() {
			r.Provider.WarnOfPool(ctx, plan.Host, plan.UsageType, &resp.Diagnostics)
		}
		plan.source(ctx, &resp.Diagnostics).files().CheckPath(sourcePath, &resp.Diagnostics)
		if load(ctx, req.Private, &resp.Diagnostics).Kernel != "" { // of the one that this one replaces, also because of -replace
			r.judge(ctx, req.Config, plan, &resp.Diagnostics)
		}
		resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, map[string]attr.Value{"usage_type": plan.UsageType})...)
		return
	}
	var state model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...); resp.Diagnostics.HasError() {
		return
	}
	plan.Digest, plan.Release, plan.Boot = plan.planDigest(ctx, state, &resp.Diagnostics), state.Release, state.Boot
	resp.RequiresReplace = plan.replacedBy(ctx, state, &resp.Diagnostics)
	switch {
	case state.Boot.IsNull(): // a file is missing
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("boot"))
		plan.Boot = types.ObjectUnknown(bootTypes)
	case plan.Cmdline.IsUnknown():
		plan.Boot = types.ObjectUnknown(bootTypes)
	default:
		plan.setBoot(state.paths())
	}
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.Plan.Schema, &resp.Plan.Raw, plan)...)
}

// judge refuses a replacement by what the apply would refuse: it would delete the kernel first.
func (r *kernel) judge(ctx context.Context, config tfsdk.Config, plan model, diags *diag.Diagnostics) {
	raw, err := plan.Source.ToTerraformValue(ctx)
	if err != nil || !r.Provider.Ready() || r.Provider.IsApplying() || plan.Host.IsUnknown() || diags.HasError() {
		return
	}
	var with model
	diags.Append(tfvalue.Get(ctx, config.Schema, config.Raw, &with)...)
	key := plan.Host.ValueString()
	h, err := r.Provider.PlannedHost(ctx, key)
	if err == nil && raw.IsFullyKnown() {
		err = r.judgeSource(ctx, h, with.source(ctx, diags))
	}
	if err != nil {
		diags.AddAttributeError(sourcePath, "The kernel can't be replaced", fmt.Sprintf("%s.\n\nThe former kernel stays as it is. To "+
			"destroy it all the same: terraform destroy -refresh=false.", host.Describe("The new kernel", key, err)))
	}
}

// judgeSource reads a file, the beginning of a download, and what an image is.
func (r *kernel) judgeSource(ctx context.Context, h *host.Host, s sourceModel) error {
	switch s.kind() {
	case fromContainer:
		_, _, err := s.Container.PrepareRootFS(ctx, &r.Provider.Tags, h.Architecture, &content.Spec{})
		return err
	case fromURL:
		is := image.URL{URL: s.URL.URL.ValueString(), Checksum: s.URL.Checksum.ValueString()}
		from, err := is.OpenFile(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		return initramfs.Check(from)
	}
	_, _, err := r.read(ctx, h, s)
	return err
}

// planDigest is the digest in the plan of an existing kernel: only a file is read again, unless it was deleted since. It may have been in
// another folder of another computer.
func (m model) planDigest(ctx context.Context, state model, diags *diag.Diagnostics) types.String {
	s := m.source(ctx, diags)
	if s.File == nil || s.File.Path.IsUnknown() || s.files().IsElsewhere(state.source(ctx, diags).files()) {
		return state.Digest
	}
	if digest := s.files().PlanDigest(ctx, sourcePath, diags); !digest.IsUnknown() {
		return digest
	}
	return state.Digest
}
