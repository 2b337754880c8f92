package disk

import (
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

// noteImported has the host record what the first configuration of an imported disk says of it.
func noteImported(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) error {
	if !state.isImported() {
		return nil
	}
	noteMasters(ctx, h, plan, state, diags)
	return noteRaw(ctx, h, plan, state, diags)
}

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
	if plan.Format.ValueString() == "raw" {
		v.Format, v.Backing = "raw", "" // its guest may have written such a head
	}
	if r.checkPool(ctx, h, plan, state, diags); !plan.isOver() {
		plan.checkShared(state, v.Backing, diags)
	} else if below := master.Images[0]; !isBacking(v.Backing, below) {
		diags.AddAttributeError(sourcePath, "Another master than it was made over", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its head says, and can't be laid over %s. Give it the source and the copy_mode "+
				"that it was made with.", state.ID.ValueString(), content.Shown(v.Backing), below.Name))
	}
	if !diags.HasError() {
		r.checkChain(ctx, h, plan, state, v, diags)
	}
}

// checkShared refuses an imported disk that has no master of its own, unless what its head names goes with that: an image that
// disks share for a container image, of which one nobody knows any more, and nothing for all else.
func (m model) checkShared(state model, backing string, diags *diag.Diagnostics) {
	switch shared := content.IsBase(backing); {
	case m.kind() == fromContainer && !shared:
		diags.AddAttributeError(childPath(fromContainer), "Not made from a container image", fmt.Sprintf(
			"A disk from a container image is an overlay of the image that such disks share, but the imported disk %s is an overlay of %s, "+
				"as its head says. Give it the source that it was made with, or none if it was blank.", state.ID.ValueString(), content.Shown(backing)))
	case m.kind() != fromContainer && backing != "":
		diags.AddAttributeError(m.masterPath(), "An overlay without its master", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its head says: whoever does not know that could write below it. Give it the "+
				"source and the copy_mode that it was made with.", state.ID.ValueString(), content.Shown(backing)))
	}
}

// isBacking tells whether what the head of an overlay names may be that image.
func isBacking(named string, i volume.Image) bool {
	if i.Type == "network" {
		return !strings.HasPrefix(named, "/")
	}
	return named == i.Name
}
