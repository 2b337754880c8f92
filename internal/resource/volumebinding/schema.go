package volumebinding

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func (r *binding) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Resolves where a volume is, and holds it under an access mode for a set of hosts. " +
			"Its `volume` is what machines take as a disk.\n\n" +
			"Kubernetes calls *binding* what ties a claim to its PersistentVolume; here it ties a claim, or storage named " +
			"directly, to virtual machine hosts.\n\n" +
			"Passwords go from Kubernetes, or from a write-only attribute, into a libvirt secret on each host, and into no state, plan " +
			"or log. libvirt keeps them base64-encoded on the host's disk, readable by root alone. A machine that runs keeps the " +
			"password that it was started with.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "UUID of the binding, and of the libvirt secret that holds its credentials on each host. " +
					"Made from the provider's `owner` and the `name`, or random when no owner is set.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the binding, unique for the provider's `owner`. Another name is another binding.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 253)},
			},
			"hosts": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Keys of the provider's `hosts` whose machines may use the volume. Changed in place.",
				Validators:          []validator.Set{setvalidator.SizeAtLeast(1)},
			},
			"access_mode": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(volume.WriteExclusive)),
				MarkdownDescription: "`write-exclusive` (default): one machine writes, no other reads or writes. " +
					"`write-shared`: many machines write, whose guests share a cluster filesystem. " +
					"`read-shared`: many machines read, none writes. Changed in place.",
				Validators: []validator.String{
					stringvalidator.OneOf(string(volume.WriteExclusive), string(volume.WriteShared), string(volume.ReadShared)),
				},
			},
			"source": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "Where the volume comes from: exactly one of the following. Other storage is another binding.",
				Attributes:          sourceAttributes(),
			},
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "What QEMU opens, as a chain of images, top first. It holds no secret, but for what a URL has in it. Its " +
					"`capacity` is what the claim says. Where none says it, for storage that is named directly and for a `disk.img`, a host " +
					"measures it when the binding is made, and again only for a claim that was made again, because it must open the storage for that. Storage that has " +
					"grown is measured by a binding that replaces this one (`terraform apply -replace`): with `create_before_destroy` in its " +
					"`lifecycle`, machines keep their disk meanwhile.",
			},
			"credentials": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Version of the credentials on each host; null when the storage asks for none. " +
					"A secret that vanished from a host, or that is out of date, is put there again by an update.",
			},
			"reserved": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the claim carries this binding's reservation; null for storage that is no claim's. One that " +
					"somebody took off the claim is put there again by an update.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true}),
		},
	}
}
