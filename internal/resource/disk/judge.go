package disk

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// isReplacing reports whether a new disk replaces one, also because of -replace: Terraform plans it with what is private of the former one.
func isReplacing(ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) bool {
	_, replaces, _ := tfvalue.LoadPrivate[string](ctx, req.Private, ownerKey, diags)
	return replaces
}

// judge refuses a replacement by what the apply would refuse: it would delete the disk first. state is empty if the former disk is not
// known.
func (r *disk) judge(ctx context.Context, config tfsdk.Config, plan, state model, diags *diag.Diagnostics) {
	if !r.Provider.Ready() || r.Provider.IsApplying() || plan.Host.IsUnknown() || diags.HasError() {
		return
	}
	key, at := plan.Host.ValueString(), path.Root("host")
	h, err := r.Provider.PlannedHost(ctx, key)
	if err == nil && plan.isFetched() && plan.isSourceKnown(ctx) {
		at = childPath(plan.kind())
		err = r.judgeSource(ctx, h, config, plan, state, diags)
	}
	if err != nil {
		diags.AddAttributeError(at, "The disk can't be replaced", fmt.Sprintf("%s.\n\nThe former disk stays as it is. To destroy it all "+
			"the same: terraform destroy -refresh=false.", host.Describe("The new disk", key, err)))
	}
}

// isFetched reports whether the content comes from outside of the hosts and the configuration.
func (m model) isFetched() bool {
	switch m.kind() {
	case fromFile, fromURL, fromContainer, fromRoot:
		return true
	}
	return false
}

// judgeSource asks once in a plan for all disks with one source.
func (r *disk) judgeSource(ctx context.Context, h *host.Host, config tfsdk.Config, plan, state model, diags *diag.Diagnostics) error {
	diags.Append(config.GetAttribute(ctx, path.Root("format"), &plan.Format)...) // that of the former disk is not asked for
	s, spec := plan.withSecrets(ctx, config, diags), plan.spec(ctx, r.plannedPool(ctx, plan, state, diags), diags)
	what := fmt.Sprintf("%s %s %s %s %d", h.Key, spec.Pool, plan.Source, spec.Format, spec.Capacity)
	_, err := providerdata.AskOnce(ctx, r.Provider, what, func(ctx context.Context) (types.String, error) {
		if s.Root == nil {
			return types.String{}, s.Judge(ctx, &r.Provider.Tags, h, spec)
		}
		if spec.Pool == "" && !s.Root.IsPulled() {
			return types.String{}, nil // what knows the image is not known
		}
		_, _, err := r.prepareRoot(ctx, h, *s.Root, &spec)
		return types.String{}, err
	})
	return err
}

// ofTakenName says that the apply fails after it has deleted a disk, because the name of the new one is taken.
func (r *disk) ofTakenName(ctx context.Context, plan, state model, diags *diag.Diagnostics) string {
	if !r.Provider.Ready() {
		return ""
	}
	name, pool := plan.Name.ValueString(), r.plannedPool(ctx, plan, state, diags)
	if name == "" || name == state.Name.ValueString() && pool == state.Pool.ValueString() && plan.Host.Equal(state.Host) {
		return ""
	}
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	has := false
	if err == nil {
		has, err = h.HasVolume(ctx, pool, name)
	}
	if err != nil || !has { // others report the error
		return ""
	}
	return fmt.Sprintf(" Unless this apply frees the name %q in pool %q, which another volume has, it then fails.", name, pool)
}
