package virtualmachine

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var videoGroup = attributeGroup{attributes: videoAttributes, intent: videoIntent, read: readVideo}

type videoModel struct {
	Model types.String `tfsdk:"model"`
	VRAM  types.Int64  `tfsdk:"vram"`
	Heads types.Int64  `tfsdk:"heads"`
}

var videoTypes = attributesOf(videoAttributes()["video"].GetType())

func videoAttributes() map[string]schema.Attribute {
	positive := []validator.Int64{int64validator.AtLeast(1)}
	return map[string]schema.Attribute{"video": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "The graphics card. If it is not configured, libvirt adds one to a machine with `graphics`, which is " +
			"not shown here. Changes take effect at the next start.",
		Attributes: map[string]schema.Attribute{
			"model": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "libvirt's name of the model, such as `vga`, `virtio`, `qxl`, `bochs`, `cirrus`, `ramfb` or " +
					"`none`.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"vram": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Video memory in KiB, a power of two. Defaults to libvirt's choice for the model.",
				Validators: []validator.Int64{powerOfTwo{}}, // libvirt rounds other sizes up
			},
			"heads": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Number of screens. Defaults to libvirt's choice for the model.", Validators: positive,
			},
		},
	}}
}

func videoIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.Video.IsNull() {
		return
	}
	v := tfvalue.Fields[videoModel](m.Video)
	want.Video = &domainxml.Video{Model: v.Model.ValueString(), VRAM: uint(v.VRAM.ValueInt64()), Heads: uint(v.Heads.ValueInt64())}
}

func readVideo(m *model, is domainxml.Machine) {
	m.Video = types.ObjectNull(videoTypes)
	if is.Video != nil {
		m.Video = types.ObjectValueMust(videoTypes, map[string]attr.Value{
			"model": types.StringValue(is.Video.Model), "vram": countOrNull(is.Video.VRAM), "heads": countOrNull(is.Video.Heads),
		})
	}
}

// countOrNull is null for 0, which means that it is not configured.
func countOrNull(n uint) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

// powerOfTwo refuses sizes that libvirt would round up.
type powerOfTwo struct{}

func (powerOfTwo) Description(context.Context) string { return "must be a power of two" }

func (v powerOfTwo) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v powerOfTwo) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if n := req.ConfigValue.ValueInt64(); isSet(req.ConfigValue) && (n < 1 || bits.OnesCount64(uint64(n)) != 1) {
		resp.Diagnostics.AddAttributeError(req.Path, "vram must be a power of two",
			fmt.Sprintf("It is %d, and %s: libvirt would round it up, and each plan would want to change that.", n, v.Description(ctx)))
	}
}
