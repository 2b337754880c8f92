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
		MarkdownDescription: "Looks at a libvirt host of the provider: what it is, what guests it can run, and what room its storage has. " +
			"It changes nothing on the host; a storage pool that only the first disk will make is shown as not there yet.\n\n" +
			"A host that does not answer is an error. The guide on hosts tells how they are reached.",
		Attributes: map[string]schema.Attribute{
			"host":         schema.StringAttribute{Required: true, MarkdownDescription: "The host's key in the provider's `hosts`."},
			"hostname":     text("The host's own name."),
			"uuid":         text("The host's UUID, as libvirt has it."),
			"architecture": text("The host's architecture in libvirt's words, such as `x86_64`."),
			"cpu_model":    text("libvirt's name for the host's CPU; null where it has none. What guests can be given may be less."),
			"cpus":         number("How many CPUs are online: threads, not cores."),
			"memory":       number("All of the host's memory, in bytes."),

			"libvirt_version":    text("Version of libvirt on the host, such as `9.0.0`."),
			"hypervisor_version": text("Version of QEMU on the host."),
			"guests": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "What guests can be, by architecture: the host's own, and those that it can emulate.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"domain_types": list("`kvm`, where libvirt believes that the host can, and `qemu` for emulation."),
					"machines":     list("QEMU's machine types, with aliases such as `q35`."),
				}},
			},
			"usage_types": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The host's storage by usage type: that of the provider's `storage`, or else of the annotations of its Kubernetes " +
					"node. Null, with a warning, when these can't be read. A configured pool that the host does not have is a warning, too.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"pool": text("The libvirt storage pool; null when no pool has the folder of an annotation yet. The first disk makes one."),
					"type": text("libvirt's type of the pool, such as `dir`; null without a pool."),
					"path": text("Where the pool is on the host, or will be; null for one that is nowhere."),
					"active": schema.BoolAttribute{
						Computed: true, MarkdownDescription: "Whether the pool's volumes can be used; null when no pool is there yet.",
					},
					"capacity":  number("The pool's size in bytes, as the next two when libvirt last looked (`virsh pool-refresh`); null unless the pool is active."),
					"allocated": number("How many bytes are taken, by whatever is on the same filesystem."),
					"available": number("How many bytes are left. Disks that are sparse may come to need more than they take now."),
				}},
			},
			"timeouts": timeouts.Attributes(ctx),
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
