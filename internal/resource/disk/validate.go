package disk

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ValidateConfig checks what requires no host.
func (r *disk) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...); resp.Diagnostics.HasError() {
		return
	}
	diags := &resp.Diagnostics
	config.Size.CheckUnit(path.Root("size"), "Gi", diags)
	config.checkHosts(diags)
	if config.Source.IsUnknown() {
		return
	}
	if config.Source.IsNull() {
		if config.Size.IsNull() {
			diags.AddAttributeError(path.Root("size"), "A blank disk without a size",
				"The disk has no source, so it is blank and needs a size. Set size, or source and copy_mode.")
		}
		if config.Format.ValueString() == "raw" && config.Preallocation.ValueString() == "metadata" {
			diags.AddAttributeError(path.Root("preallocation"), "A raw disk has no metadata", "Use off or falloc, or the format qcow2.")
		}
		return
	}
	config.checkSource(ctx, diags)
	config.checkCopy(diags)
	if p := config.Preallocation; !p.IsNull() && !p.IsUnknown() && p.ValueString() != "off" {
		diags.AddAttributeError(path.Root("preallocation"), "Only a blank disk can be preallocated",
			"What is allocated in an overlay hides its master, and an image brings its own content. Leave preallocation out.")
	}
}

// checkCopy refuses attributes that are incompatible with the kind of source.
func (m model) checkCopy(diags *diag.Diagnostics) {
	kind := m.kind()
	refuse := func(attribute, summary, detail string) {
		diags.AddAttributeError(path.Root(attribute), summary, detail)
	}
	if kind == fromVolume && m.CopyMode.IsNull() {
		refuse("copy_mode", "A master without a copy mode",
			"The disk has a source, so say what becomes of it: copy_mode = copy-on-write, copy-on-read or clone.")
	}
	if kind != fromVolume && kind != "" && !m.CopyMode.IsNull() {
		refuse("copy_mode", "A copy mode without a master", "copy_mode says what becomes of source.volume. Leave it out here.")
	}
	if (kind == fromVolume || kind == fromContainer || kind == fromRoot) && m.Format.ValueString() == "raw" {
		refuse("format", "A copy is qcow2", "Overlays and clones are qcow2 images; raw is for blank disks and images. Leave format out.")
	}
	if (kind == fromURL || kind == fromFile || m.isComposed()) && !m.ClusterSize.IsNull() {
		refuse("cluster_size", "An image has its own clusters", "cluster_size is for what is made on the host. Leave it out.")
	}
	if m.isComposed() && !m.Size.IsNull() {
		refuse("size", "It has its own size", "Leave size out.")
	}
	if m.isComposed() && m.Format.ValueString() == "qcow2" {
		refuse("format", "It is raw", "Leave format out.")
	}
}
