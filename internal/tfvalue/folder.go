package tfvalue

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// NoFolder returns a validator that refuses the volume of a shared folder where the volume of a disk is expected.
func NoFolder() validator.Object { return noFolder{} }

type noFolder struct{}

func (noFolder) Description(context.Context) string { return "a volume that is no folder" }

func (n noFolder) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

func (noFolder) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	v, _, diags := VolumeFrom(req.ConfigValue)
	resp.Diagnostics.Append(diags...)
	if n := slices.IndexFunc(v.Images, volume.Image.IsFolder); n >= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "A folder is no disk", fmt.Sprintf("%s is a folder, which no machine can open as a "+
			"disk. Take it in filesystems of a machine, or bind the volume's disk.img: without shared_folder.", v.Images[n].Name))
	}
}
