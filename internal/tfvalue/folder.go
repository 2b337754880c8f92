package tfvalue

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// NoFolder refuses the volume of a shared folder where that of a disk is expected.
type NoFolder struct{}

// Description describes the other volumes.
func (NoFolder) Description(context.Context) string { return "a volume that is no folder" }

// MarkdownDescription describes the other volumes.
func (n NoFolder) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

// ValidateObject refuses a volume with a folder.
func (NoFolder) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	v, _, diags := VolumeFrom(req.ConfigValue)
	resp.Diagnostics.Append(diags...)
	if n := slices.IndexFunc(v.Images, volume.Image.IsFolder); n >= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "A folder is no disk", fmt.Sprintf("%s is a folder, which no machine can open as a "+
			"disk. Take it in filesystems of a machine, or bind the volume's disk.img: without shared_folder.", v.Images[n].Name))
	}
}
