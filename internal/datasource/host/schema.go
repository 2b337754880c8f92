package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func (d *host) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Looks at a libvirt host of the provider: what it is, what guests it can run, what room its storage " +
			"has, and which devices a guest can have to itself. It changes nothing on the host; a storage pool that only " +
			"the first disk will make is shown as not there yet.\n\n" +
			"A host that does not answer is an error. The guide on hosts tells how they are reached.",
		Attributes: map[string]schema.Attribute{
			"host":         schema.StringAttribute{Required: true, MarkdownDescription: "The host's key in the provider's `hosts`."},
			"hostname":     text("The host's name for itself."),
			"uuid":         text("The host's UUID, as libvirt has it."),
			"architecture": text("The host's architecture in libvirt's words, such as `x86_64`."),
			"cpu_model":    text("libvirt's name of the host's CPU model; null if it has none. Guests may get fewer features."),
			"cpu": schema.SingleNestedAttribute{
				Computed: true,
				MarkdownDescription: "The processor that a guest can have at most without being bound to this very processor: what a " +
					"machine gets with the `cpu.mode` `host-model`, of the domain type `kvm` if libvirt reports it. A running " +
					"machine can move to a host that has all of its features. Null if libvirt can't tell.",
				Attributes: map[string]schema.Attribute{
					"model":    text("The named model, for a machine's `cpu.model`. A host may lack some features of its model."),
					"vendor":   text("The processor's vendor, such as `AMD`; null if any will do."),
					"features": list("All features, sorted: those of the model that the host has, and those that it has beyond."),
				},
			},
			"cpus":   number("Number of online CPUs: threads, not cores."),
			"memory": number("Total memory of the host in bytes."),

			"libvirt_version":    text("Version of libvirt on the host, such as `9.0.0`."),
			"hypervisor_version": text("Version of QEMU on the host."),
			"guests": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "Guest capabilities by architecture: the host's own, and those that it can emulate.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"domain_types": list("`kvm`, if libvirt reports it, and `qemu` for emulation."),
					"machines":     list("QEMU's machine types, with aliases such as `q35`."),
				}},
			},
			"usage_types": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The host's storage by usage type: from the provider's `storage`, or else from the annotations " +
					"of its Kubernetes node. Null, with a warning, if these can't be read. A configured pool that the host does not " +
					"have is a warning, too.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"pool": text("The libvirt storage pool; null if no pool has the folder of an annotation yet: the first disk " +
						"creates one."),
					"type": text("libvirt's type of the pool, such as `dir`; null without a pool."),
					"path": text("Path of the pool on the host, also if it does not exist yet; null for a pool without a path."),
					"active": schema.BoolAttribute{
						Computed: true, MarkdownDescription: "Whether the pool is active; null if it does not exist yet.",
					},
					"capacity": number("The pool's size in bytes. Like the next two, it is from libvirt's last refresh (`virsh " +
						"pool-refresh`), and null unless the pool is active."),
					"allocated": number("Bytes in use, by all files on the same filesystem."),
					"available": number("Free bytes. Sparse disks may need more of them later."),
				}},
			},
			"pci_devices":      deviceAttribute("The host's PCI devices by address, such as `0000:01:00.0`."),
			"usb_devices":      deviceAttribute("The host's USB devices by their ports, such as `1-1.2`; `usb1` is a root hub."),
			"mediated_devices": deviceAttribute("The host's active mediated devices by UUID."),
			"timeouts":         timeouts.Attributes(ctx),
		},
	}
}

func text(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func number(description string) schema.Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

func list(description string) schema.Attribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}
