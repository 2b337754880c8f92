package virtualmachine

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var cpuGroup = attributeGroup{attributes: cpuAttributes, intent: cpuIntent, read: readCPU, check: checkCPU, able: validateCPU}

type cpuModel struct {
	VCPUs    types.Int64  `tfsdk:"vcpus"`
	MaxVCPUs types.Int64  `tfsdk:"max_vcpus"`
	Mode     types.String `tfsdk:"mode"`
	Model    types.String `tfsdk:"model"`
	Topology types.Object `tfsdk:"topology"`
	Features types.Map    `tfsdk:"features"`
	Pin      types.Map    `tfsdk:"pin"`
	Emulator types.String `tfsdk:"emulator_pin"`
	Shares   types.Int64  `tfsdk:"shares"`
	Period   types.Int64  `tfsdk:"period"`
	Quota    types.Int64  `tfsdk:"quota"`
}

type topologyModel struct {
	Sockets types.Int64 `tfsdk:"sockets"`
	Dies    types.Int64 `tfsdk:"dies"`
	Cores   types.Int64 `tfsdk:"cores"`
	Threads types.Int64 `tfsdk:"threads"`
}

var (
	cpuTypes      = attributesOf(cpuAttributes()["cpu"].GetType())
	topologyTypes = attributesOf(cpuTypes["topology"])
	cpuPath       = path.Root("cpu")
)

func cpuAttributes() map[string]schema.Attribute {
	count := []validator.Int64{int64validator.Between(1, 4096)}
	number := func(description string, required bool) schema.Attribute {
		return schema.Int64Attribute{Required: required, Optional: !required, MarkdownDescription: description, Validators: count}
	}
	cpu := schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Processors. One by default. Processors are added live up to `max_vcpus`; all other changes take effect " +
			"at the next start.",
		Attributes: map[string]schema.Attribute{
			"vcpus": number("Number of virtual processors. Increases up to the running machine's `max_vcpus` are live: the guest may "+
				"have to put the new processors online. Decreases take effect at the next start.", true),
			"max_vcpus": number("Maximum number of processors of the running guest; defaults to `vcpus`. Changes take effect at the "+
				"next start.", false),
			"mode": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "CPU mode: `host-passthrough` (the host's CPU), `host-model` (the named model closest to it), " +
					"`maximum` (all supported features) or `custom` (a `model`). Defaults to libvirt's choice. Changes take effect " +
					"at the next start.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.CPUModes...)},
			},
			"model": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "CPU model of the mode `custom`, which it implies, such as `EPYC-Rome`: one of `virsh " +
					"domcapabilities`. Changes take effect at the next start.",
				Validators: notEmpty,
			},
			"topology": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "CPU topology; by default each processor is a socket. The product must be `max_vcpus`. Changes " +
					"take effect at the next start.",
				Attributes: map[string]schema.Attribute{
					"sockets": number("Number of sockets.", true),
					"dies":    number("Dies in each socket; 1 if absent.", false),
					"cores":   number("Cores in each die.", true),
					"threads": number("Threads of each core.", true),
				},
			},
		},
	}
	cpu.Attributes["features"] = schema.MapAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: "Features of the processor by their names, such as `{ aes = \"require\", hypervisor = \"disable\" }`: " +
			"`require`, `disable`, `optional`, `force` or `forbid`. Needs a `mode`. Changes take effect at the next start.",
		Validators: []validator.Map{
			mapvalidator.SizeAtLeast(1),
			mapvalidator.KeysAre(stringvalidator.RegexMatches(featureName, "must be a feature's name in libvirt")),
			mapvalidator.ValueStringsAre(stringvalidator.OneOf("require", "disable", "optional", "force", "forbid")),
		},
	}
	cpu.Attributes["pin"] = schema.MapAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: "Processors of the host on which virtual ones run, by their numbers, such as `{ \"0\" = \"2-3\", \"1\" = " +
			"\"6,8\" }`. Others run on all. Changed live; one that is not pinned any more is free at the next start.",
		Validators: []validator.Map{mapvalidator.SizeAtLeast(1)},
	}
	cpu.Attributes["emulator_pin"] = tfvalue.Optional("Processors of the host on which the threads of QEMU itself run, such as `0-1`. " +
		"Changes take effect at the next start.")
	share := func(description string, from, to int64) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, MarkdownDescription: description + " Changes take effect at the next start.",
			Validators: []validator.Int64{int64validator.Between(from, to)},
		}
	}
	cpu.Attributes["shares"] = share("Weight of the machine when processors of the host are short; others usually have 1024 "+
		"(cgroups v1) or 100 (v2).", 2, 262144)
	cpu.Attributes["period"] = share("Period of `quota`, in microseconds; 100000 by default.", 1000, 1000000)
	cpu.Attributes["quota"] = share("Time that each virtual processor may use in a `period`, in microseconds.", 1000, 17592186044415)
	all := attributesOf(cpu.GetType())
	cpu.Default = objectdefault.StaticValue(types.ObjectValueMust(all, map[string]attr.Value{
		"vcpus": types.Int64Value(1), "max_vcpus": types.Int64Null(), "mode": types.StringNull(), "model": types.StringNull(),
		"topology": types.ObjectNull(attributesOf(all["topology"])), "features": noTexts, "pin": noTexts,
		"emulator_pin": types.StringNull(), "shares": types.Int64Null(), "period": types.Int64Null(), "quota": types.Int64Null(),
	}))
	return map[string]schema.Attribute{"cpu": cpu}
}

func (m model) cpu(ctx context.Context, diags *diag.Diagnostics) (cpu cpuModel, topology *domainxml.Topology) {
	diags.Append(m.CPU.As(ctx, &cpu, asOptions)...)
	if cpu.Topology.IsNull() || cpu.Topology.IsUnknown() {
		return cpu, nil
	}
	var t topologyModel
	diags.Append(cpu.Topology.As(ctx, &t, asOptions)...)
	if t.Sockets.IsUnknown() || t.Dies.IsUnknown() || t.Cores.IsUnknown() || t.Threads.IsUnknown() {
		return cpu, nil
	}
	return cpu, &domainxml.Topology{
		Sockets: uint(t.Sockets.ValueInt64()), Dies: cmp.Or(uint(t.Dies.ValueInt64()), 1),
		Cores: uint(t.Cores.ValueInt64()), Threads: uint(t.Threads.ValueInt64()),
	}
}

// featureName matches the names of features in libvirt's processor maps.
var featureName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

var noTexts = types.MapNull(types.StringType)

// texts are the known values of a map of strings; nil without any.
func texts(m types.Map) (all map[string]string) {
	for key, value := range m.Elements() {
		if text, ok := value.(types.String); ok && isSet(text) {
			if all == nil {
				all = map[string]string{}
			}
			all[key] = text.ValueString()
		}
	}
	return all
}

// checkPins refuses what names no processors, of the machine or of a host.
func (c cpuModel) checkPins(diags *diag.Diagnostics) {
	most := max(c.VCPUs.ValueInt64(), c.MaxVCPUs.ValueInt64())
	if is := c.Emulator.ValueString(); is != "" {
		if _, err := domainxml.CPUs(is); err != nil {
			diags.AddAttributeError(cpuPath.AtName("emulator_pin"), "No processors of a host", err.Error()+".")
		}
	}
	for key, value := range texts(c.Pin) {
		n, err := strconv.ParseUint(key, 10, 16)
		known := !c.VCPUs.IsUnknown() && !c.MaxVCPUs.IsUnknown()
		if err != nil || key != strconv.FormatUint(n, 10) || known && int64(n) >= most {
			diags.AddAttributeError(cpuPath.AtName("pin"), "No such processor",
				fmt.Sprintf("The machine has no processor %.20q: they have the numbers 0 to %d.", key, most-1))
		}
		if _, err := domainxml.CPUs(value); err != nil {
			diags.AddAttributeError(cpuPath.AtName("pin"), "No processors of a host", fmt.Sprintf("Processor %.20s: %s.", key, err))
		}
	}
}

// checkCPU refuses contradictory processor attributes.
func checkCPU(ctx context.Context, m model, diags *diag.Diagnostics) {
	cpu, topology := m.cpu(ctx, diags)
	vcpus, most := cpu.VCPUs.ValueInt64(), cpu.MaxVCPUs.ValueInt64()
	if most != 0 && vcpus > most {
		diags.AddAttributeError(cpuPath.AtName("max_vcpus"), "More processors than the maximum",
			fmt.Sprintf("The machine is to have %d processors, and can have %d at most. Raise max_vcpus, or lower vcpus.", vcpus, most))
	}
	most = cmp.Or(most, vcpus)
	if topology != nil && vcpus != 0 && !cpu.MaxVCPUs.IsUnknown() && int64(topology.VCPUs()) != most {
		diags.AddAttributeError(cpuPath.AtName("topology"), "A topology of another number of processors",
			fmt.Sprintf("The topology has %d processors, and the machine up to %d. Both must be the same.", topology.VCPUs(), most))
	}
	cpu.checkPins(diags)
	if len(texts(cpu.Features)) > 0 && cpu.Mode.IsNull() && cpu.Model.IsNull() {
		diags.AddAttributeError(cpuPath.AtName("features"), "Features of no mode",
			"libvirt takes features of a mode only. Set the mode, such as host-model, or a model.")
	}
	custom := cpu.Mode.ValueString() == domainxml.CustomCPU
	if !cpu.Model.IsNull() && !cpu.Mode.IsNull() && !cpu.Mode.IsUnknown() && !custom {
		diags.AddAttributeError(cpuPath.AtName("model"), "A model of a mode that has none",
			fmt.Sprintf("The mode %s chooses the model by itself. Leave the model out, or the mode.", cpu.Mode.ValueString()))
	}
	if custom && cpu.Model.IsNull() {
		diags.AddAttributeError(cpuPath.AtName("model"), "No model", "The mode custom needs a model, such as qemu64.")
	}
}

func cpuIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	cpu, topology := m.cpu(ctx, diags)
	want.VCPUs = uint(cpu.VCPUs.ValueInt64())
	if most := uint(cpu.MaxVCPUs.ValueInt64()); most != want.VCPUs {
		want.MaxVCPUs = most
	}
	want.CPU = domainxml.CPU{Mode: cpu.Mode.ValueString(), Model: cpu.Model.ValueString(), Topology: topology}
	want.CPU.Features = texts(cpu.Features)
	want.CPU.EmulatorPin, want.CPU.Shares = cpu.Emulator.ValueString(), uint(cpu.Shares.ValueInt64())
	want.CPU.Period, want.CPU.Quota = uint(cpu.Period.ValueInt64()), uint(cpu.Quota.ValueInt64())
	for key, value := range texts(cpu.Pin) {
		if want.CPU.Pins == nil {
			want.CPU.Pins = map[uint]string{}
		}
		n, _ := strconv.ParseUint(key, 10, 16) // checkPins has
		want.CPU.Pins[uint(n)] = value
	}
	if want.CPU.Model != "" {
		want.CPU.Mode = domainxml.CustomCPU
	}
}

// readCPU keeps null for values that are implied by other attributes.
func readCPU(m *model, is domainxml.Machine) {
	was := m.CPU.Attributes()
	most, mode := is.MaxVCPUs, is.CPU.Mode
	now, _ := m.scaled(fields(was).number("vcpus"), is.VCPUs, is.Drift.VCPUs)
	if most == 0 && isSaid(was, "max_vcpus") {
		most = is.VCPUs
	}
	if mode == domainxml.CustomCPU && isSaid(was, "model") && !isSaid(was, "mode") {
		mode = ""
	}
	topology, _ := was["topology"].(types.Object)
	features, pins := map[string]attr.Value{}, map[string]attr.Value{}
	for name, policy := range is.CPU.Features {
		features[name] = types.StringValue(policy)
	}
	before := tfvalue.Fields[cpuModel](m.CPU)
	emulator := tfvalue.OrNull(is.CPU.EmulatorPin)
	if domainxml.SameCPUs(before.Emulator.ValueString(), is.CPU.EmulatorPin) {
		emulator = before.Emulator
	}
	pinned := is.CPU.Pins
	if is.Drift.Pins != nil {
		pinned = is.Drift.Pins
	}
	for n, cpus := range pinned {
		key := strconv.FormatUint(uint64(n), 10)
		if text := texts(before.Pin)[key]; domainxml.SameCPUs(text, cpus) {
			cpus = text
		}
		pins[key] = types.StringValue(cpus)
	}
	m.CPU = types.ObjectValueMust(cpuTypes, map[string]attr.Value{
		"vcpus": numberOrNull(now), "max_vcpus": numberOrNull(most), "mode": tfvalue.OrNull(mode),
		"model": tfvalue.OrNull(is.CPU.Model), "topology": topologyObject(topology, is.CPU.Topology),
		"features": textsOrNull(features), "pin": textsOrNull(pins),
		"emulator_pin": emulator, "shares": numberOrNull(is.CPU.Shares), "period": numberOrNull(is.CPU.Period),
		"quota": numberOrNull(is.CPU.Quota),
	})
}

func textsOrNull(all map[string]attr.Value) types.Map {
	if len(all) == 0 {
		return noTexts
	}
	return types.MapValueMust(types.StringType, all)
}

func isSaid(was map[string]attr.Value, name string) bool {
	return was[name] != nil && !was[name].IsNull()
}

func topologyObject(was types.Object, is *domainxml.Topology) types.Object {
	if is == nil {
		return types.ObjectNull(topologyTypes)
	}
	dies := is.Dies
	if dies == 1 && !isSaid(was.Attributes(), "dies") {
		dies = 0
	}
	return types.ObjectValueMust(topologyTypes, map[string]attr.Value{
		"sockets": types.Int64Value(int64(is.Sockets)), "dies": numberOrNull(dies),
		"cores": types.Int64Value(int64(is.Cores)), "threads": types.Int64Value(int64(is.Threads)),
	})
}

func numberOrNull(n uint) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

func validateCPU(caps host.DomainCapabilities, want domainxml.Machine, diags *diag.Diagnostics) {
	if most := max(want.VCPUs, want.MaxVCPUs); caps.MaxVCPUs > 0 && most > caps.MaxVCPUs {
		diags.AddAttributeError(cpuPath, "Too many processors",
			fmt.Sprintf("A machine of type %s on this host has %d processors at most, not %d.", caps.Type, caps.MaxVCPUs, most))
	}
	if mode := want.CPU.Mode; mode != "" && len(caps.CPUModes) > 0 && !slices.Contains(caps.CPUModes, mode) {
		unsupported(diags, cpuPath.AtName("mode"), "processor mode", mode, caps.CPUModes)
	}
	if model := want.CPU.Model; model != "" && len(caps.CPUModels) > 0 && !slices.Contains(caps.CPUModels, model) {
		unsupported(diags, cpuPath.AtName("model"), "processor model", model, caps.CPUModels)
	}
}
