package disk

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ImportState takes <host>/<pool>/<volume>.
func (r *disk) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts, err := tfvalue.ImportID(req.ID, "<host>/<pool>/<volume>")
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error())
		return
	}
	if !r.Provider.Ready() {
		resp.Diagnostics.AddError("The disk could not be imported", "The provider's configuration is not known yet.")
		return
	}
	h, err := r.Provider.Hosts.Host(parts[0])
	if err != nil {
		resp.Diagnostics.AddError("Unknown host", err.Error())
		return
	}
	v, err := h.Volume(ctx, parts[1], parts[2])
	if err == nil {
		err = content.CheckImport(ctx, h, parts[1], parts[2])
	}
	if err != nil {
		resp.Diagnostics.AddError("The disk could not be imported", err.Error())
		return
	}
	for name, value := range map[string]string{"id": req.ID, "host": parts[0], "pool": parts[1], "name": parts[2]} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
	tfvalue.SavePrivate(ctx, resp.Private, importedKey, imported{Modified: v.Modified}, &resp.Diagnostics)
}
