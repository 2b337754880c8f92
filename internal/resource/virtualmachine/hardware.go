package virtualmachine

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var hardwareGroup = attributeGroup{attributes: hardwareAttributes, intent: hardwareIntent, read: readHardware}

type machineModel struct {
	Type         types.String `tfsdk:"type"`
	Arch         types.String `tfsdk:"arch"`
	DomainType   types.String `tfsdk:"domain_type"`
	HotplugPorts types.Int64  `tfsdk:"hotplug_ports"`
}

var machineTypes = attributesOf(hardwareAttributes()["machine"].GetType())

func hardwareAttributes() map[string]schema.Attribute {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	return map[string]schema.Attribute{"machine": schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The emulated hardware. Changing `type`, `arch` or `domain_type` forces a new resource.",
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "Machine type, such as `pc`, `q35` or a full name. Defaults to libvirt's choice.",
				Validators:          notEmpty,
			},
			"arch": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "Architecture, such as `x86_64`. Defaults to the host's.",
				Validators:          notEmpty,
			},
			"domain_type": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: kept,
				MarkdownDescription: "`kvm` (default), or `qemu` for emulation on hosts without KVM.",
				Validators:          []validator.String{stringvalidator.OneOf("kvm", "qemu")},
			},
			"hotplug_ports": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(0, 128)},
				MarkdownDescription: "Number of PCI Express root ports of a `q35`, one for each device: hot-plugging needs a free " +
					"port, and is refused without one unless `allow_restart` is set. Defaults to 12. Changes take effect at the next " +
					"start; ports in use are not removed.",
			},
		},
	}}
}

func (m model) machine() machineModel {
	return tfvalue.Fields[machineModel](m.Machine)
}

// hardware is the hardware to query a host for.
func (m machineModel) hardware() host.Hardware {
	return host.Hardware{Arch: m.Arch.ValueString(), Type: m.Type.ValueString(), DomainType: cmp.Or(m.DomainType.ValueString(), "kvm")}
}

func hardwareIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	emulated := m.machine()
	is := emulated.hardware()
	want.Type, want.Arch, want.DomainType = is.Type, is.Arch, is.DomainType
	if !emulated.HotplugPorts.IsNull() {
		ports := uint(emulated.HotplugPorts.ValueInt64())
		want.HotplugPorts = &ports
	}
}

func readHardware(m *model, is domainxml.Machine) {
	ports := types.Int64Null()
	if is.HotplugPorts != nil {
		ports = types.Int64Value(int64(*is.HotplugPorts))
	}
	m.Machine = types.ObjectValueMust(machineTypes, map[string]attr.Value{
		"type": types.StringValue(is.Type), "arch": types.StringValue(is.Arch), "domain_type": types.StringValue(is.DomainType),
		"hotplug_ports": ports,
	})
}

// checkPorts refuses hot-plug ports of a machine that is known to have none. emulated is the same as in checkDevices.
func (m model) checkPorts(emulated machineModel, diags *diag.Diagnostics) {
	if m.machine().HotplugPorts.IsNull() || emulated.Type.IsUnknown() || domainxml.IsQ35(emulated.Type.ValueString()) {
		return
	}
	diags.AddAttributeError(path.Root("machine").AtName("hotplug_ports"), "No PCI Express ports",
		"Only a machine of type q35 has them. Devices are plugged into a pc as it is. Leave hotplug_ports out, or set the type.")
}

// otherMachine reports whether the emulated hardware is known to differ; an alias equals the type that it resolves to.
func otherMachine(was, is machineModel) bool {
	return isSet(is.Type) && !domainxml.SameMachineType(was.Type.ValueString(), is.Type.ValueString()) || otherPlatform(was, is)
}

// otherPlatform is otherMachine without the type.
func otherPlatform(was, is machineModel) bool {
	differs := func(a, b types.String) bool { return isSet(b) && !a.Equal(b) }
	return differs(was.Arch, is.Arch) || differs(was.DomainType, is.DomainType)
}
