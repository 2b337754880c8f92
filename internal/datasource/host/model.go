package host

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	libvirthost "github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type model struct {
	Host              types.String           `tfsdk:"host"`
	Hostname          types.String           `tfsdk:"hostname"`
	UUID              types.String           `tfsdk:"uuid"`
	Architecture      types.String           `tfsdk:"architecture"`
	CPUModel          types.String           `tfsdk:"cpu_model"`
	CPU               *cpuModel              `tfsdk:"cpu"`
	CPUs              types.Int64            `tfsdk:"cpus"`
	Memory            types.Int64            `tfsdk:"memory"`
	LibvirtVersion    types.String           `tfsdk:"libvirt_version"`
	HypervisorVersion types.String           `tfsdk:"hypervisor_version"`
	Guests            map[string]guestModel  `tfsdk:"guests"`
	UsageTypes        map[string]usageModel  `tfsdk:"usage_types"`
	PCI               map[string]deviceModel `tfsdk:"pci_devices"`
	USB               map[string]deviceModel `tfsdk:"usb_devices"`
	Mediated          map[string]deviceModel `tfsdk:"mediated_devices"`
	Timeouts          timeouts.Value         `tfsdk:"timeouts"`
}

type cpuModel struct {
	Model    types.String `tfsdk:"model"`
	Vendor   types.String `tfsdk:"vendor"`
	Features []string     `tfsdk:"features"`
}

type guestModel struct {
	DomainTypes []string `tfsdk:"domain_types"`
	Machines    []string `tfsdk:"machines"`
}

type usageModel struct {
	Pool      types.String `tfsdk:"pool"`
	Type      types.String `tfsdk:"type"`
	Path      types.String `tfsdk:"path"`
	Active    types.Bool   `tfsdk:"active"`
	Capacity  types.Int64  `tfsdk:"capacity"`
	Allocated types.Int64  `tfsdk:"allocated"`
	Available types.Int64  `tfsdk:"available"`
}

// fill sets the host's attributes.
func (m *model) fill(a libvirthost.About) {
	m.Hostname, m.UUID = types.StringValue(a.Name), types.StringValue(a.UUID)
	m.Architecture, m.CPUModel = tfvalue.OrNull(a.Architecture), tfvalue.OrNull(a.CPUModel)
	m.CPUs, m.Memory = types.Int64Value(a.CPUs), types.Int64Value(a.Memory)
	m.LibvirtVersion, m.HypervisorVersion = types.StringValue(a.Libvirt), types.StringValue(a.Hypervisor)
	m.Guests = map[string]guestModel{}
	for architecture, g := range a.Guests {
		m.Guests[architecture] = guestModel{g.DomainTypes, g.Machines}
	}
}

// showPool leaves the sizes of an inactive pool null: 0 would mean a full one.
func showPool(name string, p libvirthost.Pool) usageModel {
	seen := usageModel{
		Pool: types.StringValue(name), Type: tfvalue.OrNull(p.Type), Path: tfvalue.OrNull(p.Path),
		Active: types.BoolValue(p.Active),
	}
	if p.Active {
		seen.Capacity, seen.Allocated, seen.Available = types.Int64Value(p.Capacity), types.Int64Value(p.Allocation),
			types.Int64Value(p.Available)
	}
	return seen
}

func showProcessor(p libvirthost.Processor) *cpuModel {
	if p.Model == "" {
		return nil
	}
	return &cpuModel{types.StringValue(p.Model), tfvalue.OrNull(p.Vendor), p.Features}
}
