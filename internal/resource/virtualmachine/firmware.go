package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var firmwareGroup = attributeGroup{attributes: firmwareAttributes, intent: firmwareIntent, read: readFirmware}

type firmwareModel struct {
	Type       types.String `tfsdk:"type"`
	SecureBoot types.Bool   `tfsdk:"secure_boot"`
}

var firmwareTypes = attributesOf(firmwareAttributes()["firmware"].GetType())

func firmwareAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"firmware": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Firmware: BIOS or UEFI; libvirt chooses the file. Defaults to libvirt's choice, which is BIOS on x86. " +
			"Changes take effect at the next start. UEFI stores its variables (NVRAM) in a file on the host, which is kept through " +
			"all changes and deleted with the machine. A machine that gets `secure_boot` later therefore has the keys of its " +
			"existing NVRAM: run `virsh start --reset-nvram` once to enroll the default ones.",
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				Required: true, MarkdownDescription: "`bios` or `efi`.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.BIOS, domainxml.UEFI)},
			},
			"secure_boot": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Secure boot, with the default keys enrolled. Requires `efi` and, on x86, a machine of type `q35`.",
			},
		},
	}}
}

func firmwareIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if !m.Firmware.IsNull() {
		f := tfvalue.Fields[firmwareModel](m.Firmware)
		want.Firmware = &domainxml.Firmware{Type: f.Type.ValueString(), SecureBoot: f.SecureBoot.ValueBool()}
	}
}

func readFirmware(m *model, is domainxml.Machine) {
	m.Firmware = types.ObjectNull(firmwareTypes)
	if is.Firmware != nil {
		m.Firmware = types.ObjectValueMust(firmwareTypes, map[string]attr.Value{
			"type": types.StringValue(is.Firmware.Type), "secure_boot": types.BoolValue(is.Firmware.SecureBoot),
		})
	}
}

// checkFirmware refuses secure boot on other machines than q35: it protects its variables with system management mode, which of the x86
// machines only a q35 has.
func (m model) checkFirmware(machine machineModel, diags *diag.Diagnostics) {
	f := tfvalue.Fields[firmwareModel](m.Firmware)
	if !f.SecureBoot.ValueBool() {
		return
	}
	at := path.Root("firmware").AtName("secure_boot")
	if f.Type.ValueString() == domainxml.BIOS {
		diags.AddAttributeError(at, "No secure boot with BIOS", "Only UEFI has secure boot. Use type = \"efi\", or leave secure_boot out.")
	}
	if isPC, known := machine.hasIDE(); isPC && known {
		diags.AddAttributeError(at, "No secure boot on a pc", fmt.Sprintf("Secure boot needs system management mode, which machines of "+
			"type pc have not: this one is %s. Use machine = { type = \"q35\" }.", machine.Type.ValueString()))
	}
}
