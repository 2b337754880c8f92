package disk

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type ignitionModel struct {
	Config          types.String       `tfsdk:"config"`
	ConfigWO        types.String       `tfsdk:"config_wo"`
	ConfigWOVersion types.Int64        `tfsdk:"config_wo_version"`
	SecretRef       *tfvalue.SecretRef `tfsdk:"secret_ref"`
}

func ignitionAttribute() schema.Attribute {
	attributes := map[string]schema.Attribute{
		"secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret with the configuration in the key `ignition`, `userdata` or " +
			"`userData`. Another version of it makes a new disk."),
	}
	at := path.MatchRoot("source").AtName(fromIgnition)
	addText(attributes, "config", "The configuration, in JSON. Butane's YAML is refused: transpile it, with the data source `ct_config` "+
		"of the provider `poseidon/ct` for example.", stringvalidator.ExactlyOneOf(at.AtName("config_wo"), at.AtName("secret_ref")))
	return schema.SingleNestedAttribute{
		Optional: true, Attributes: attributes,
		MarkdownDescription: "An Ignition configuration (Flatcar, Fedora CoreOS), in a small read-only volume that has it and spaces at " +
			"its end: for `fw_cfg` of `virtclaim_virtual_machine`. Exactly one of `config`, `config_wo` and `secret_ref`; at most 1 MiB. " +
			"Changed content makes a new disk. All users that can read the storage pool of the host, or the configuration in the guest, " +
			"can read all of it.",
	}
}

func (i ignitionModel) parts() []part {
	return []part{{
		inline: i.Config, writeOnly: i.ConfigWO, version: i.ConfigWOVersion, secret: i.SecretRef,
		keys: []string{"ignition", "userdata", "userData"},
	}}
}

// check refuses what is no configuration, as far as it is known.
func (i ignitionModel) check(diags *diag.Diagnostics) {
	for name, config := range map[string]types.String{"config": i.Config, "config_wo": i.ConfigWO} {
		if config.IsNull() || config.IsUnknown() {
			continue
		}
		if err := image.CheckIgnition([]byte(config.ValueString())); err != nil {
			diags.AddAttributeError(childPath(fromIgnition).AtName(name), "Invalid Ignition configuration", err.Error())
		}
	}
}
