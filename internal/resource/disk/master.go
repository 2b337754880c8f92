package disk

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkWriters refuses an overlay of a disk that a machine of the configuration is known to write to.
func (r *disk) checkWriters(plan model, diags *diag.Diagnostics) {
	v, known, found := tfvalue.VolumeFrom(plan.Volume)
	diags.Append(found...)
	if !r.Provider.Ready() || !known || plan.Host.IsUnknown() || diags.HasError() {
		return
	}
	by := "disk " + plan.Host.ValueString() + "/" + cmp.Or(plan.Name.ValueString(), plan.NamePrefix.ValueString()+"*")
	for depth, i := range v.Uses() {
		isMaster := i.IsDisk() || i.Binding != "" && i.AccessMode == volume.WriteExclusive
		if depth > 0 && isMaster && i.Name != "" &&
			!r.Provider.RecordPlannedUse(providerdata.PlannedUse{By: by, Image: i, Depth: depth, Disk: true}, sourcePath, diags) {
			return
		}
	}
}
