package disk

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// judge refuses a replacement by what the apply would refuse: it would delete the disk first.
func (r *disk) judge(ctx context.Context, config tfsdk.Config, plan, state model, diags *diag.Diagnostics) {
	if !plan.isFetched() || !plan.isSourceKnown(ctx) || plan.Host.IsUnknown() || diags.HasError() {
		return
	}
	h, err := r.backend.Hosts.Host(plan.Host.ValueString())
	if err == nil {
		s, spec := plan.withSecrets(ctx, config, diags), plan.spec(ctx, r.plannedPool(ctx, plan, state, diags), diags)
		if s.Root != nil {
			_, _, err = s.Root.PrepareRootFS(ctx, &r.backend.Tags, h.Architecture, &spec)
		} else {
			err = s.Judge(ctx, &r.backend.Tags, h, spec)
		}
	}
	if err != nil {
		diags.AddAttributeError(childPath(plan.kind()), "The disk can't be replaced", fmt.Sprintf("%s.\n\nDisk %s stays as it is. To destroy it all the "+
			"same: terraform destroy -refresh=false.", host.Describe("The new disk", plan.Host.ValueString(), err), state.ID.ValueString()))
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
