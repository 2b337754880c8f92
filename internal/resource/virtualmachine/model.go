package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type model struct {
	ID            types.String     `tfsdk:"id"`
	UUID          types.String     `tfsdk:"uuid"`
	Host          types.String     `tfsdk:"host"`
	Name          types.String     `tfsdk:"name"`
	NamePrefix    types.String     `tfsdk:"name_prefix"`
	CPU           types.Object     `tfsdk:"cpu"`
	Memory        tfvalue.Quantity `tfsdk:"memory"`
	Machine       types.Object     `tfsdk:"machine"`
	Boot          types.Object     `tfsdk:"boot"`
	FWCfg         types.Map        `tfsdk:"fw_cfg"`
	Run           types.Object     `tfsdk:"run"`
	ExitCode      types.Int64      `tfsdk:"exit_code"`
	Disks         types.Map        `tfsdk:"disks"`
	Interfaces    types.Map        `tfsdk:"interfaces"`
	Addresses     types.Map        `tfsdk:"addresses"`
	WaitFor       types.Object     `tfsdk:"wait_for"`
	GuestAgent    types.Bool       `tfsdk:"guest_agent"`
	Serial        types.Object     `tfsdk:"serial"`
	Firmware      types.Object     `tfsdk:"firmware"`
	TPM           types.Object     `tfsdk:"tpm"`
	Graphics      types.Object     `tfsdk:"graphics"`
	Video         types.Object     `tfsdk:"video"`
	RNG           types.Object     `tfsdk:"rng"`
	Watchdog      types.Object     `tfsdk:"watchdog"`
	Console       types.Object     `tfsdk:"console"`
	Filesystems   types.Map        `tfsdk:"filesystems"`
	DevicesXML    types.String     `tfsdk:"devices_xml"`
	DomainXML     types.String     `tfsdk:"domain_xml"`
	Clock         types.Object     `tfsdk:"clock"`
	OnReboot      types.String     `tfsdk:"on_reboot"`
	OnCrash       types.String     `tfsdk:"on_crash"`
	Features      types.Object     `tfsdk:"features"`
	MemoryBacking types.Object     `tfsdk:"memory_backing"`
	MaxMemory     tfvalue.Quantity `tfsdk:"max_memory"`
	Title         types.String     `tfsdk:"title"`
	Description   types.String     `tfsdk:"description"`
	State         types.String     `tfsdk:"state"`
	Pending       types.List       `tfsdk:"pending"`
	Endpoints     types.Object     `tfsdk:"endpoints"`
	Autostart     types.Bool       `tfsdk:"autostart"`
	AllowRestart  types.Bool       `tfsdk:"allow_restart"`
	Running       types.Bool       `tfsdk:"running"`
	ForceStop     types.Bool       `tfsdk:"force_stop"`
	ShutdownMode  types.String     `tfsdk:"shutdown_mode"`
	Migration     types.Object     `tfsdk:"migration"`
	Timeouts      timeouts.Value   `tfsdk:"timeouts"`
}

var asOptions = basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true, UnhandledNullAsEmpty: true}

// objects are the objects of a map that are set, by key.
func objects[T any](m types.Map) map[string]T {
	all := map[string]T{}
	for key, element := range m.Elements() {
		if o, ok := element.(types.Object); ok && isSet(o) {
			all[key] = tfvalue.Fields[T](o)
		}
	}
	return all
}

// intent is the machine that a wholly known plan describes.
func (m model) intent(ctx context.Context, diags *diag.Diagnostics) domainxml.Machine {
	want := domainxml.Machine{Name: m.Name.ValueString(), UUID: m.UUID.ValueString()}
	for _, g := range groups {
		g.intent(ctx, m, &want, diags)
	}
	return want
}

// was is the machine of a state, which may be incomplete.
func (m model) was(ctx context.Context) domainxml.Machine {
	var missing diag.Diagnostics
	return m.intent(ctx, &missing)
}

// read fills the model with the machine's actual values. Attributes that are not in libvirt are kept: host, timeouts, force_stop.
func (m *model) read(is domainxml.Machine, active bool) {
	m.ID = types.StringValue(m.Host.ValueString() + "/" + is.Name)
	m.UUID, m.Name = types.StringValue(is.UUID), types.StringValue(is.Name)
	for _, g := range groups {
		g.read(m, is)
	}
	m.Running = types.BoolValue(active || m.Running.ValueBool() && m.runsOnce() && is.IsDone())
	if m.ForceStop.IsNull() {
		m.ForceStop = types.BoolValue(false) // an import: no host has this attribute
	}
}
