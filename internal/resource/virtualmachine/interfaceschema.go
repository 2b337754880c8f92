package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	macAddress = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	// unicast is an address of one device: the lowest bit of its first byte is not set.
	unicast     = regexp.MustCompile(`^.[02468aceACE]`)
	deviceModel = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	uuidShape   = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

func interfacesAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"interfaces": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Network interfaces, keyed by a name of your choice. The key is the interface's identity: adding one leaves the " +
			"others, their addresses and places alone. Each is on exactly one of `network`, `bridge`, `direct` and `user`. A running " +
			"machine is given interfaces and loses them; one that it boots from (with a `boot_order`) is changed at its next start. From " +
			"a network or bridge to another one an interface moves while the guest goes on with it. Another kind, `model`, `mac`, `mtu` or " +
			"`virtual_port` is another device: the old one is unplugged and the new one plugged in.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"network":    schema.StringAttribute{Optional: true, MarkdownDescription: "A libvirt network of the host. Changes live.", Validators: notEmpty},
			"port_group": schema.StringAttribute{Optional: true, MarkdownDescription: "A port group of the `network`. Changes live.", Validators: notEmpty},
			"bridge":     schema.StringAttribute{Optional: true, MarkdownDescription: "A bridge of the host. Changes live.", Validators: notEmpty},
			"direct": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "A macvtap device over one of the host's. Another one is plugged in anew.",
				Attributes: map[string]schema.Attribute{
					"dev": schema.StringAttribute{Required: true, MarkdownDescription: "The host's device, such as `eth0`.", Validators: notEmpty},
					"mode": schema.StringAttribute{
						Optional: true, Computed: true, Default: stringdefault.StaticString("bridge"),
						MarkdownDescription: "`bridge` (default), `vepa`, `private` or `passthrough`.",
						Validators:          []validator.String{stringvalidator.OneOf("bridge", "vepa", "private", "passthrough")},
					},
				},
			},
			"user": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "QEMU's own network: the guest reaches what the host reaches, and nobody reaches the guest. Plugged in anew.",
			},
			"model": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("virtio"),
				MarkdownDescription: "The device that the guest sees: `virtio` (default), `e1000`, `e1000e`, `rtl8139` and what else QEMU has. " +
					"Another one is plugged in anew.",
				Validators: []validator.String{stringvalidator.RegexMatches(deviceModel, "must consist of letters, digits, _ and -")},
			},
			"mac": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "MAC address, of six bytes with colons, in capitals or not. Generated if absent, and kept as long as the " +
					"interface is there. Another one is plugged in anew.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
				Validators: []validator.String{
					stringvalidator.RegexMatches(macAddress, "must be six bytes in hexadecimal digits with colons between them, such as 52:54:00:12:34:56"),
					stringvalidator.RegexMatches(unicast, "must be the address of one device: the second digit of a multicast address is odd"),
				},
			},
			"boot_order": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Place in the order of devices to boot from, from 1. Unique over disks and interfaces. " +
					"It changes at the next start.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"link": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("up"),
				MarkdownDescription: "`up` (default), or `down` for a cable that is not plugged in. Changes live.",
				Validators:          []validator.String{stringvalidator.OneOf("up", "down")},
			},
			"mtu": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Largest packet, in bytes; that of what the interface is on if absent. Another one is plugged in " +
					"anew; one that is taken out is there until the next start on a `network`.",
				Validators: []validator.Int64{int64validator.Between(68, 65535)},
			},
			"vlan": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "VLANs, on what has them for single interfaces: Open vSwitch, and a device with " +
					"SR-IOV. One that is taken out is there until the next start on a `network`.",
				Attributes: map[string]schema.Attribute{
					"tags": schema.ListAttribute{
						Required: true, ElementType: types.Int64Type, MarkdownDescription: "Tags. With several the guest tags its packets itself.",
						Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueInt64sAre(int64validator.Between(0, 4095))},
					},
					"trunk": schema.BoolAttribute{Optional: true, MarkdownDescription: "Have the guest tag its packets with a single tag, too."},
				},
			},
			"virtual_port": virtualPortAttribute(),
		}},
	}}
}

func virtualPortAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "How a switch knows the interface. What 802.1Qbg needs is said in a port group of a `network`.",
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				Required: true, MarkdownDescription: "`openvswitch`, `midonet` or `802.1Qbh`.",
				Validators: []validator.String{stringvalidator.OneOf("openvswitch", "midonet", "802.1Qbh")},
			},
			"interface_id": schema.StringAttribute{
				Optional: true, MarkdownDescription: "UUID of the port. Made up for `openvswitch` if absent; `midonet` needs it.",
				Validators: []validator.String{stringvalidator.RegexMatches(uuidShape, "must be a UUID")},
			},
			"profile_id": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Port profile. For `openvswitch` and `802.1Qbh`, which needs it.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// checkInterfaces refuses what libvirt would refuse or, as with addresses that are there twice, would not.
func checkInterfaces(ctx context.Context, m model, diags *diag.Diagnostics) {
	interfaces, macs := m.interfaces(ctx, diags), map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(interfaces)) {
		i := interfaces[key]
		i.checkSource(key, diags)
		i.checkVirtualPort(ctx, key, diags)
		mac := strings.ToLower(i.MAC.ValueString())
		if other, taken := macs[mac]; taken && mac != "" {
			diags.AddAttributeError(interfacePath(key).AtName("mac"), "The same MAC address twice",
				fmt.Sprintf("Interfaces %s and %s both have %s. Give each its own, or leave it out to have one generated.", other, key, mac))
		}
		macs[mac] = key
	}
}

func (i interfaceModel) checkSource(key string, diags *diag.Diagnostics) {
	sources, unknown := 0, false
	for _, v := range []attr.Value{i.Network, i.Bridge, i.Direct, i.User} {
		unknown = unknown || v.IsUnknown()
		if isSet(v) && !v.Equal(types.BoolValue(false)) {
			sources++
		}
	}
	if sources > 1 || sources == 0 && !unknown {
		diags.AddAttributeError(interfacePath(key), "An interface is on one thing",
			fmt.Sprintf("Interface %s is on %d of network, bridge, direct and user. Set exactly one of them.", key, sources))
	}
	if isSet(i.PortGroup) && i.Network.IsNull() {
		diags.AddAttributeError(interfacePath(key).AtName("port_group"), "A port group without its network",
			fmt.Sprintf("Interface %s has the port group %s, but only a libvirt network has port groups. Set network, or leave port_group out.",
				key, i.PortGroup.ValueString()))
	}
	if !i.User.ValueBool() {
		return
	}
	for name, v := range map[string]attr.Value{"vlan": i.VLAN, "virtual_port": i.VirtualPort} {
		if isSet(v) {
			diags.AddAttributeError(interfacePath(key).AtName(name), "QEMU's own network has no switch",
				fmt.Sprintf("Interface %s is on QEMU's own network (user), where nothing knows of a %s. Leave it out.", key, name))
		}
	}
}

func (i interfaceModel) checkVirtualPort(ctx context.Context, key string, diags *diag.Diagnostics) {
	var port virtualPortModel
	if !isSet(i.VirtualPort) {
		return
	}
	diags.Append(i.VirtualPort.As(ctx, &port, asOptions)...)
	for _, rule := range []struct {
		of, name string
		value    types.String
		needed   bool
	}{
		{"midonet", "interface_id", port.InterfaceID, true},
		{"midonet", "profile_id", port.ProfileID, false},
		{"802.1Qbh", "profile_id", port.ProfileID, true},
		{"802.1Qbh", "interface_id", port.InterfaceID, false},
	} {
		if port.Type.ValueString() == rule.of && !rule.value.IsUnknown() && rule.value.IsNull() == rule.needed {
			needs := map[bool]string{true: "needs", false: "has no"}[rule.needed]
			diags.AddAttributeError(interfacePath(key).AtName("virtual_port").AtName(rule.name), "Not a port of this type",
				fmt.Sprintf("Interface %s: a virtual port of the type %s %s %s.", key, rule.of, needs, rule.name))
		}
	}
}
