package disk

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// becauseOf explains a replacement whose cause is not in the configuration. If the plan did not have it, Terraform stops the apply and
// reports a provider bug, and this explanation is all that the user sees of the cause.
func becauseOf(paths path.Paths) string {
	if !paths.Contains(path.Root("digest")) {
		return ""
	}
	return " Its file or seed is not what it was made from. If Terraform stops with an inconsistent final plan, that changed after the " +
		"plan: the disk was not touched. Plan and apply again."
}

// restIsUnproven says that only the end of a download shows whether it is whole.
func (m model) restIsUnproven(ctx context.Context) string {
	if m.isUndecided() || m.isFetched() && !m.isSourceKnown(ctx) {
		return " What the new one is made from is known after that, and may turn out to be no disk."
	}
	if !m.isFetched() || m.kind() == fromFile {
		return ""
	}
	return " Only the beginning of the new one is looked at before that. With name_prefix and create_before_destroy, this disk stays " +
		"until the new one is complete."
}

// warnOfLoss warns of the data that a plan deletes. A seed has none that is not in the configuration; only an apply that may stop at its
// replacement is explained.
func (r *disk) warnOfLoss(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, how, why string) {
	var state model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...); resp.Diagnostics.HasError() {
		return
	}
	id := state.ID.ValueString()
	// Of several warnings with one summary Terraform shows only the first.
	summary, detail := fmt.Sprintf("The content of disk %s is lost", id), " deletes all that was written to it."
	if state.isComposed() {
		if why == "" || r.Provider.HasRefreshed() {
			return
		}
		summary, detail = fmt.Sprintf("Disk %s is replaced", id), " writes what the configuration has now."
	}
	resp.Diagnostics.AddWarning(summary,
		fmt.Sprintf("%s disk %s (volume %s in pool %s on host %s)%s%s%s", how, id, state.Name.ValueString(),
			state.Pool.ValueString(), state.Host.ValueString(), detail, why, r.refusedFor(ctx, state, &resp.Diagnostics)))
}

// refusedFor says which overlays of a disk, as far as libvirt knows them, make the apply refuse to delete it. The apply looks at all
// that there is.
func (r *disk) refusedFor(ctx context.Context, state model, diags *diag.Diagnostics) string {
	own, known := state.made(ctx, diags)
	if !known || !r.Provider.Ready() {
		return ""
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil {
		return ""
	}
	volumes, err := providerdata.AskOnce(ctx, r.Provider, h.Key+"/overlays", func(ctx context.Context) ([]host.StorageVolume, error) {
		return h.KnownOverlays(ctx, "")
	})
	if err != nil {
		tflog.Warn(ctx, "The overlays of a disk are not known", map[string]any{"disk": state.ID.ValueString(), "error": err.Error()})
	}
	return refusedForOverlays(volumes, own.Images[0].Name)
}

func refusedForOverlays(volumes []host.StorageVolume, path string) string {
	volumes = slices.DeleteFunc(slices.Clone(volumes), func(v host.StorageVolume) bool { return v.Backing != path })
	if len(volumes) == 0 {
		return ""
	}
	return fmt.Sprintf(" Overlays of it: %d, such as %q. The apply refuses that unless it removes them first.",
		len(volumes), volumes[0].Pool+"/"+volumes[0].Name)
}

// warnOfNoEffect warns of changed attributes that apply to new disks only.
func warnOfNoEffect(plan, state model, diags *diag.Diagnostics) {
	for name, changed := range map[string]bool{
		"cluster_size":  !plan.ClusterSize.IsUnknown() && !plan.ClusterSize.Equal(state.ClusterSize),
		"preallocation": !plan.Preallocation.IsUnknown() && !plan.Preallocation.Equal(state.Preallocation),
	} {
		if changed {
			diags.AddAttributeWarning(path.Root(name), name+" has no effect on a disk that is there", fmt.Sprintf(
				"%s applies only at creation. Disk %s is unchanged; to recreate it: terraform apply -replace=<address of this resource>.",
				name, state.ID.ValueString()))
		}
	}
}

// warnOfUnknownMaster warns of a master that this plan may replace: a disk over another one would be a mix of two.
func (r *disk) warnOfUnknownMaster(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	was, known := state.master(ctx, diags)
	if !known || !plan.sourceVolume().IsUnknown() || !state.isOver() || !r.Provider.HasRefreshed() {
		return
	}
	diags.AddAttributeWarning(sourcePath, fmt.Sprintf("The master of disk %s may be another one", state.ID.ValueString()), fmt.Sprintf(
		"The disk is an overlay of %s, and what source.volume is will only be known during the apply. If that is another master, as when "+
			"its resource is replaced, the apply is refused: replace the disk, too (terraform apply -replace=<address of this "+
			"resource>), which deletes what was written to it.", was.Images[0].Name))
}

// warnOfPool warns that a changed storage map moves no disk.
func (r *disk) warnOfPool(plan, state model, diags *diag.Diagnostics) {
	if !r.Provider.Ready() || !plan.Host.Equal(state.Host) { // the pool of its other host may have another name
		return
	}
	pool, ok := r.Provider.Hosts.Storage(plan.Host.ValueString())[plan.UsageType.ValueString()]
	if ok && pool != state.Pool.ValueString() {
		diags.AddAttributeWarning(path.Root("usage_type"), "The disk stays in its pool", fmt.Sprintf(
			"The usage type %s of host %s is the pool %s now. That holds for new disks; disk %s stays in pool %s.",
			plan.UsageType.ValueString(), plan.Host.ValueString(), pool, state.ID.ValueString(), state.Pool.ValueString()))
	}
}
