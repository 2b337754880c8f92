package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var tpmGroup = attributeGroup{attributes: tpmAttributes, intent: tpmIntent, read: readTPM, check: checkTPM}

type tpmModel struct {
	Model   types.String `tfsdk:"model"`
	Version types.String `tfsdk:"version"`
}

var tpmTypes = attributesOf(tpmAttributes()["tpm"].GetType())

func tpmAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"tpm": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A TPM, emulated by `swtpm` on the host. Changes take effect at the next start. Its state is kept " +
			"through all changes, also while the machine has no TPM, and deleted with the machine.",
		Attributes: map[string]schema.Attribute{
			"model": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "`tpm-tis`, `tpm-crb` (only version 2.0) or `tpm-spapr`. Defaults to libvirt's choice.",
				Validators:          []validator.String{stringvalidator.OneOf("tpm-tis", "tpm-crb", "tpm-spapr")},
			},
			"version": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("2.0"),
				MarkdownDescription: "`2.0` (default) or `1.2`. Each version has its own state.",
				Validators:          []validator.String{stringvalidator.OneOf("1.2", "2.0")},
			},
		},
	}}
}

func tpmIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if !m.TPM.IsNull() {
		t := tfvalue.Fields[tpmModel](m.TPM)
		want.TPM = &domainxml.TPM{Model: t.Model.ValueString(), Version: t.Version.ValueString()}
	}
}

func readTPM(m *model, is domainxml.Machine) {
	m.TPM = types.ObjectNull(tpmTypes)
	if is.TPM != nil {
		m.TPM = types.ObjectValueMust(tpmTypes, map[string]attr.Value{
			"model": tfvalue.OrNull(is.TPM.Model), "version": types.StringValue(is.TPM.Version),
		})
	}
}

func checkTPM(_ context.Context, m model, diags *diag.Diagnostics) {
	if t := tfvalue.Fields[tpmModel](m.TPM); t.Model.ValueString() == "tpm-crb" && t.Version.ValueString() == "1.2" {
		diags.AddAttributeError(path.Root("tpm").AtName("model"), "No such TPM",
			"The model tpm-crb has version 2.0 only. Use tpm-tis, or leave the version out.")
	}
}
