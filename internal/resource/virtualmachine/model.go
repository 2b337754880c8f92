package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

type model struct {
	ID        types.String     `tfsdk:"id"`
	UUID      types.String     `tfsdk:"uuid"`
	Host      types.String     `tfsdk:"host"`
	Name      types.String     `tfsdk:"name"`
	CPU       types.Object     `tfsdk:"cpu"`
	Memory    tfvalue.Quantity `tfsdk:"memory"`
	Machine   types.Object     `tfsdk:"machine"`
	Boot      types.Object     `tfsdk:"boot"`
	Disks     types.Map        `tfsdk:"disks"`
	Serial    types.Object     `tfsdk:"serial"`
	Running   types.Bool       `tfsdk:"running"`
	ForceStop types.Bool       `tfsdk:"force_stop"`
	Timeouts  timeouts.Value   `tfsdk:"timeouts"`
}

type cpuModel struct {
	VCPUs types.Int64 `tfsdk:"vcpus"`
}

type machineModel struct {
	Type       types.String `tfsdk:"type"`
	Arch       types.String `tfsdk:"arch"`
	DomainType types.String `tfsdk:"domain_type"`
}

type bootModel struct {
	Kernel  types.String `tfsdk:"kernel"`
	Initrd  types.String `tfsdk:"initrd"`
	Cmdline types.String `tfsdk:"cmdline"`
}

type diskModel struct {
	Volume    types.Object `tfsdk:"volume"`
	Device    types.String `tfsdk:"device"`
	Bus       types.String `tfsdk:"bus"`
	BootOrder types.Int64  `tfsdk:"boot_order"`
	Ephemeral types.Bool   `tfsdk:"ephemeral"`
}

type serialModel struct {
	LogFile types.String `tfsdk:"log_file"`
}

var (
	cpuTypes     = map[string]attr.Type{"vcpus": types.Int64Type}
	machineTypes = map[string]attr.Type{
		"type": types.StringType, "arch": types.StringType, "domain_type": types.StringType,
	}
	bootTypes = map[string]attr.Type{
		"kernel": types.StringType, "initrd": types.StringType, "cmdline": types.StringType,
	}
	diskTypes = map[string]attr.Type{
		"volume": types.ObjectType{AttrTypes: tfvalue.VolumeTypes}, "device": types.StringType,
		"bus": types.StringType, "boot_order": types.Int64Type, "ephemeral": types.BoolType,
	}
	serialTypes = map[string]attr.Type{"log_file": types.StringType}
)

var asOptions = basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true, UnhandledNullAsEmpty: true}

// diskPath is where a disk's attribute is in the configuration.
func diskPath(key string) path.Path { return path.Root("disks").AtMapKey(key) }

// disks are the disks by key; none while the map is unknown.
func (m model) disks(ctx context.Context, diags *diag.Diagnostics) map[string]diskModel {
	disks := map[string]diskModel{}
	if !m.Disks.IsNull() && !m.Disks.IsUnknown() {
		diags.Append(m.Disks.ElementsAs(ctx, &disks, true)...)
	}
	return disks
}

func (m model) machine(ctx context.Context, diags *diag.Diagnostics) machineModel {
	var mm machineModel
	if !m.Machine.IsNull() && !m.Machine.IsUnknown() {
		diags.Append(m.Machine.As(ctx, &mm, asOptions)...)
	}
	return mm
}

// intent is the machine that a wholly known plan asks for.
func (m model) intent(ctx context.Context, diags *diag.Diagnostics) domainxml.Machine {
	var cpu cpuModel
	diags.Append(m.CPU.As(ctx, &cpu, asOptions)...)
	emulated := m.machine(ctx, diags)
	memory, err := m.Memory.KiB()
	if err != nil {
		diags.AddAttributeError(path.Root("memory"), "Invalid quantity", err.Error())
	}
	want := domainxml.Machine{
		Name: m.Name.ValueString(), UUID: m.UUID.ValueString(),
		VCPUs: uint(cpu.VCPUs.ValueInt64()), Memory: memory,
		Type: emulated.Type.ValueString(), Arch: emulated.Arch.ValueString(), DomainType: "kvm",
		Disks: map[string]domainxml.Disk{},
	}
	if t := emulated.DomainType.ValueString(); t != "" {
		want.DomainType = t
	}
	if !m.Boot.IsNull() {
		var boot bootModel
		diags.Append(m.Boot.As(ctx, &boot, asOptions)...)
		want.Boot = &domainxml.Boot{
			Kernel: boot.Kernel.ValueString(), Initrd: boot.Initrd.ValueString(), Cmdline: boot.Cmdline.ValueString(),
		}
	}
	if !m.Serial.IsNull() {
		var serial serialModel
		diags.Append(m.Serial.As(ctx, &serial, asOptions)...)
		want.Serial = &domainxml.Serial{LogFile: serial.LogFile.ValueString()}
	}
	for key, d := range m.disks(ctx, diags) {
		want.Disks[key] = d.intent(ctx, key, diags)
	}
	return want
}

func (d diskModel) intent(ctx context.Context, key string, diags *diag.Diagnostics) domainxml.Disk {
	v, known, found := tfvalue.VolumeFrom(ctx, d.Volume)
	diags.Append(found...)
	if !known || len(v.Images) == 0 {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "A volume without an image",
			fmt.Sprintf("The volume of disk %s names nothing that could be opened. Take it from a virtclaim_volume_binding or a virtclaim_disk.", key))
		v = volume.Volume{Images: []volume.Image{{}}}
	}
	return domainxml.Disk{
		Volume: v, Device: d.Device.ValueString(), Bus: d.Bus.ValueString(), BootOrder: uint(d.BootOrder.ValueInt64()),
		Ephemeral: d.Ephemeral.ValueBool(),
	}
}

// read fills the model with what a machine really is. What is not in libvirt stays: host, timeouts, force_stop.
func (m *model) read(is domainxml.Machine, active bool) {
	m.ID = types.StringValue(m.Host.ValueString() + "/" + is.Name)
	m.UUID, m.Name = types.StringValue(is.UUID), types.StringValue(is.Name)
	m.CPU = types.ObjectValueMust(cpuTypes, map[string]attr.Value{"vcpus": types.Int64Value(int64(is.VCPUs))})
	m.Memory = m.Memory.OrSame(tfvalue.QuantityOfKiB(is.Memory))
	m.Machine = types.ObjectValueMust(machineTypes, map[string]attr.Value{
		"type": types.StringValue(is.Type), "arch": types.StringValue(is.Arch), "domain_type": types.StringValue(is.DomainType),
	})
	m.Boot = types.ObjectNull(bootTypes)
	if is.Boot != nil {
		m.Boot = types.ObjectValueMust(bootTypes, map[string]attr.Value{
			"kernel": tfvalue.OrNull(is.Boot.Kernel), "initrd": tfvalue.OrNull(is.Boot.Initrd), "cmdline": tfvalue.OrNull(is.Boot.Cmdline),
		})
	}
	m.Serial = types.ObjectNull(serialTypes)
	if is.Serial != nil {
		m.Serial = types.ObjectValueMust(serialTypes, map[string]attr.Value{"log_file": tfvalue.OrNull(is.Serial.LogFile)})
	}
	m.readDisks(is.Disks)
	m.Running = types.BoolValue(active)
	if m.ForceStop.IsNull() {
		m.ForceStop = types.BoolValue(false) // an import: no host knows of it
	}
}

// readDisks leaves null and an empty map as they are: both say that there is no disk.
func (m *model) readDisks(is map[string]domainxml.Disk) {
	if len(is) == 0 && len(m.Disks.Elements()) == 0 {
		return
	}
	disks := map[string]attr.Value{}
	for key, d := range is {
		order := types.Int64Null()
		if d.BootOrder != 0 {
			order = types.Int64Value(int64(d.BootOrder))
		}
		disks[key] = types.ObjectValueMust(diskTypes, map[string]attr.Value{
			"volume": tfvalue.VolumeObject(d.Volume, tfvalue.Unknowns{}), "device": types.StringValue(d.Device),
			"bus": types.StringValue(d.Bus), "boot_order": order, "ephemeral": types.BoolValue(d.Ephemeral),
		})
	}
	m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
}
