package volumebinding

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func (r *binding) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: providerdata.WithURIs,
		MarkdownDescription: "Resolves where a volume is stored, and reserves it under an access mode for a set of hosts. Its " +
			"`volume` is used for the disks of machines.\n\n" +
			"In Kubernetes, *binding* connects a claim to its PersistentVolume; here it connects a claim, or directly named storage, " +
			"to virtual machine hosts.\n\n" +
			"Passwords are copied from Kubernetes, or from a write-only attribute, into a libvirt secret on each host. They are not " +
			"stored in state, plan or logs. libvirt stores them base64-encoded on the host's disk, readable by root only. A running " +
			"machine keeps using the password that it was started with.",
		Attributes: map[string]schema.Attribute{
			"id": tfvalue.Constant("UUID of the binding, and of the libvirt secret with its credentials on each host. Derived from " +
				"the provider's `owner` and the `name`, or random if no owner is set."),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the binding, unique for the provider's `owner`. Changing it forces a new resource.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 253)},
			},
			"hosts": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Keys of the provider's `hosts` whose machines may use the volume. Can be changed in place.",
				Validators:          []validator.Set{setvalidator.SizeAtLeast(1)},
			},
			"access_mode": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(string(volume.WriteExclusive)),
				MarkdownDescription: "`write-exclusive` (default): one machine writes, no other reads or writes. `write-shared`: " +
					"several machines write, whose guests share a cluster filesystem. `read-shared`: several machines read, none " +
					"writes. Can be changed in place.",
				Validators: []validator.String{tfvalue.Words{
					Accepted: []string{string(volume.WriteExclusive), string(volume.WriteShared), string(volume.ReadShared)},
					Instead: map[string]string{
						"read-only": "Write read-shared.", "readonlymany": "Write read-shared.", "readwriteonce": "Write write-exclusive.",
						"readwritemany": "Write write-shared.",
					},
				}},
			},
			"content": tfvalue.Optional("Content that the volume has: the `generation` of the `virtclaim_volume_content` that has "+
				"filled the same storage by another "+
				"binding of the same owner. The binding is created when the volume is filled, a claim may be bound `read-shared` beside "+
				"the `write-exclusive` binding that it was filled by, and disks over the volume are replaced when it is filled with other "+
				"content. Can be changed in place.", stringvalidator.LengthAtLeast(1)),
			"source": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "Source of the volume: exactly one of the following. Other storage forces a new resource.",
				Attributes:          sourceAttributes(),
			},
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The chain of images that QEMU opens, top first. The `uri` of an image is a path, " +
					"`rbd:pool/image` or `protocol://server/name`; `servers` are those that it has no room for, such as Ceph " +
					"monitors. `options` are `initiator` and `tls_verify`. It has no secrets, except those in a URL. Its " +
					"`capacity` is that of the claim. For directly named storage and for a `disk.img`, a host measures it when the " +
					"binding is created, and again only for a recreated claim, because it must open the storage for that. To measure " +
					"storage that has grown, replace the binding (`terraform apply -replace`): with `create_before_destroy` in its " +
					"`lifecycle`, machines keep their disks.",
			},
			"credentials": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Version of the credentials on each host; null if the storage needs none. An update restores " +
					"secrets that are missing or outdated on a host.",
			},
			"reserved": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the claim has this binding's reservation; null for directly named storage. An update " +
					"restores a reservation that was removed from the claim.",
			},
			"attached": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether Kubernetes has mounted the volume on each host; null without `attach`. An update restores " +
					"what is missing, as after the restart of a host.",
			},
			"timeouts": tfvalue.Timeouts(ctx, createTimeout, readTimeout, updateTimeout, deleteTimeout),
		},
	}
}
