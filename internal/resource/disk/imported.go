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

// isImported reports whether no configuration has been applied to the disk since its import, so that its creation attributes are unknown:
// an applied one always has a usage type.
func (m model) isImported() bool { return m.UsageType.IsNull() }

// noteImported records on the host what the first configuration of an imported disk decides.
func noteImported(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) error {
	if !state.isImported() {
		return nil
	}
	noteMasters(ctx, h, plan, state, diags)
	return noteRaw(ctx, h, plan, state, diags)
}

// checkBacking refuses a master for an imported disk that is not the one in its header: its guest would see, and write, a mix of both.
// Headers don't name network storage, so that is not checked here.
func (r *disk) checkBacking(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	master, known := plan.master(ctx, diags)
	if !r.Provider.Ready() || plan.isUndecided() || plan.isOver() && (!known || master.Images[0].Name == "") {
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
		v.Format, v.Backing = "raw", "" // its guest may have written a header with a backing file
	}
	if r.checkPool(ctx, plan, state, diags); !plan.isOver() {
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

// checkShared refuses an imported disk without a configured master unless its header agrees: it must name a shared image for a container
// image, whose digest is not known any more, and no backing file for other sources.
func (m model) checkShared(state model, backing string, diags *diag.Diagnostics) {
	switch shared := content.IsBase(backing); {
	case m.isOverShared() && !shared:
		diags.AddAttributeError(m.masterPath(), "Not made from a container image", fmt.Sprintf(
			"A disk from a container image is an overlay of the image that such disks share, but the imported disk %s is an overlay of "+
				"%s, as its head says. Give it the source that it was made with, or none if it was blank.", state.ID.ValueString(),
			content.Shown(backing)))
	case !m.isOverShared() && backing != "":
		diags.AddAttributeError(m.masterPath(), "An overlay without its master", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its header says, and a configuration without that would allow writes to "+
				"its master. Configure the source and the copy_mode with which it was "+
				"created.", state.ID.ValueString(), content.Shown(backing)))
	}
}

// isBacking reports whether the backing file in an overlay's header may be that image.
func isBacking(named string, i volume.Image) bool {
	if i.Type == "network" {
		return !strings.HasPrefix(named, "/")
	}
	return named == i.Name
}
