package volumebinding

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
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

// objectName is what Kubernetes accepts as the name of most objects (RFC 1123 subdomain).
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

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
					"`read-shared`: many machines read, none writes. Changed in place.",
				Validators: []validator.String{stringvalidator.OneOf(string(volume.WriteExclusive), string(volume.ReadShared))},
			},
			"source": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "Where the volume comes from: exactly one of the following. Other storage is another binding.",
				Attributes: map[string]schema.Attribute{
					claimSource: claimAttribute(),
					"iscsi":     iscsiAttribute(),
				},
			},
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "What QEMU opens, as a chain of images, top first. It holds no secret.",
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

func claimAttribute() schema.Attribute {
	name := []validator.String{stringvalidator.RegexMatches(objectName, "must be a name as Kubernetes accepts it")}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A PersistentVolumeClaim with `volumeMode: Block` on an iSCSI PersistentVolume. A claim that is " +
			"not there at plan may be made in the same apply; one that is not bound is waited for until the create timeout.",
		Validators: []validator.Object{objectvalidator.ExactlyOneOf(
			path.MatchRoot("source").AtName(claimSource), path.MatchRoot("source").AtName("iscsi"))},
		Attributes: map[string]schema.Attribute{
			"namespace":  schema.StringAttribute{Required: true, MarkdownDescription: "The claim's namespace.", Validators: name},
			"claim_name": schema.StringAttribute{Required: true, MarkdownDescription: "The claim's name.", Validators: name},
		},
	}
}

func iscsiAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "A logical unit of an iSCSI target, without Kubernetes.",
		Attributes: map[string]schema.Attribute{
			"portal": schema.StringAttribute{
				Required: true, MarkdownDescription: "Address of the target, `host` or `host:port`; the port defaults to 3260.",
			},
			"iqn": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the target."},
			"lun": schema.Int64Attribute{
				Required: true, MarkdownDescription: "Number of the logical unit.",
				Validators: []validator.Int64{int64validator.Between(0, 16383)},
			},
			"initiator": schema.StringAttribute{Optional: true, MarkdownDescription: "Initiator name to log in with."},
			"username": schema.StringAttribute{
				Optional: true, MarkdownDescription: "CHAP user. Comes with `password_wo`.",
			},
			"password_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "CHAP password. Write-only (Terraform 1.11 or newer): never in state or plan. " +
					"Change `password_wo_version` with it.",
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Any number; a change of it sends the password to the hosts again.",
				Validators: []validator.Int64{
					int64validator.AlsoRequires(path.MatchRelative().AtParent().AtName("password_wo")),
				},
			},
			"secret_ref": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "A Kubernetes secret with the keys `node.session.auth.username` and " +
					"`node.session.auth.password`, instead of `username` and `password_wo`.",
				Attributes: map[string]schema.Attribute{
					"namespace": schema.StringAttribute{Required: true, MarkdownDescription: "The secret's namespace."},
					"name":      schema.StringAttribute{Required: true, MarkdownDescription: "The secret's name."},
				},
			},
		},
	}
}
