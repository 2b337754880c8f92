package disk

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// isImported tells whether a disk in state was imported and no configuration has been applied to it yet, so that nobody
// knows how it was made: a configuration always has a usage type.
func (m model) isImported() bool { return m.UsageType.IsNull() }

// checkBacking refuses to lay an imported disk over another image than the one that its head names: its guest would see,
// and write, a mix of the two. Network storage is never named there, so of that nobody can tell.
func (r *disk) checkBacking(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	master, known := plan.master(ctx, diags)
	if !r.backend.Ready() || plan.isUndecided() || plan.isOver() && (!known || master.Images[0].Name == "") {
		return
	}
	h := r.host(state, diags)
	if diags.HasError() {
		return
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if err != nil {
		addError(diags, state, "The disk could not be read", err)
		return
	}
	if plan.kind() == fromContainer && content.IsBase(v.Backing) {
		return // of which image it is, nobody knows any more
	}
	if !plan.isOver() {
		if v.Backing != "" {
			diags.AddAttributeError(sourcePath, "An overlay without its master", fmt.Sprintf(
				"The imported disk %s is an overlay of %s, as its head says: whoever does not know that could write below it. Give it the "+
					"source and the copy_mode that it was made with.", state.ID.ValueString(), v.Backing))
		}
		return
	}
	if below := master.Images[0]; !isBacking(v.Backing, below) {
		diags.AddAttributeError(sourcePath, "Another master than it was made over", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its head says, and can't be laid over %s. Give it the source and the copy_mode "+
				"that it was made with.", state.ID.ValueString(), cmp.Or(v.Backing, "nothing"), below.Name))
	}
}

// sharedBelow is the image that an imported disk shares with others, if its head names one.
func (r *disk) sharedBelow(ctx context.Context, h *host.Host, m model, v host.StorageVolume) ([]volume.Image, error) {
	if m.Volume.IsNull() && content.IsBase(v.Backing) {
		base, err := content.BaseOf(ctx, h, v)
		return []volume.Image{m.shared(base)}, err
	}
	return nil, nil
}

// isBacking tells whether what the head of an overlay names may be that image.
func isBacking(named string, i volume.Image) bool {
	if i.Type == "network" {
		return !strings.HasPrefix(named, "/")
	}
	return named == i.Name
}
