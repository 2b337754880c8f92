package virtualmachine

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var rngGroup = attributeGroup{attributes: rngAttributes, intent: rngIntent, read: readRNG}

type rngModel struct {
	Source types.String `tfsdk:"source"`
}

// randomDevice excludes block devices, whose content the guest would read.
var randomDevice = regexp.MustCompile(`^/dev/[a-z0-9_-]*(random|rng)[a-z0-9_-]*$`)

var rngTypes = attributesOf(rngAttributes()["rng"].GetType())

func rngAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"rng": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "A virtio random number generator. Changes take effect at the next start.",
		Attributes: map[string]schema.Attribute{
			"source": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("/dev/urandom"),
				MarkdownDescription: "Source of random numbers on the host. Defaults to `/dev/urandom`.",
				Validators: []validator.String{stringvalidator.RegexMatches(randomDevice,
					"must be a device such as /dev/urandom, /dev/random or /dev/hwrng")},
			},
		},
	}}
}

func rngIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.RNG.IsNull() {
		return
	}
	r := tfvalue.Fields[rngModel](m.RNG)
	want.RNG = &domainxml.RNG{Source: r.Source.ValueString()}
}

func readRNG(m *model, is domainxml.Machine) {
	m.RNG = types.ObjectNull(rngTypes)
	if is.RNG != nil {
		m.RNG = types.ObjectValueMust(rngTypes, map[string]attr.Value{"source": types.StringValue(is.RNG.Source)})
	}
}
