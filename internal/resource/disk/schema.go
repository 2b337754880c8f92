package disk

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// volumeName leaves out what a file name or an import id could not carry.
var volumeName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

const nameRule = "must consist of letters, digits, dots, _ and -, and not start with a dot or -"

func (r *disk) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A disk of its own on one host: an overlay or a clone of any volume, an image from a container registry, a web " +
			"server or a file, a seed for cloud-init, or a blank one. Its `volume` is for the disks of machines, and for further disks over it.\n\n" +
			"Its content goes with it: destroying or replacing it deletes what was written. A larger `size` is had in place, also " +
			"while a machine runs on it; a smaller one is refused. The disk is replaced by another `host`, `name`, `name_prefix`, " +
			"`copy_mode`, `format`, `usage_type`, master or configured content, never by a master that is reached otherwise or has grown, " +
			"nor by what a tag or a URL stands for by now.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "`<host>/<pool>/<volume>`, which is also the import id.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"host": schema.StringAttribute{
				Required: true, MarkdownDescription: "Key of the provider's `hosts` that has the disk.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Name of the storage volume, unique in its pool. Either this or `name_prefix`. Names that begin with " +
					"`virtclaim-` are reserved.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators: []validator.String{
					stringvalidator.RegexMatches(volumeName, nameRule), stringvalidator.LengthAtMost(200),
					stringvalidator.ExactlyOneOf(path.MatchRoot("name"), path.MatchRoot("name_prefix")),
				},
			},
			"name_prefix": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What the name of the storage volume starts with; the rest is made up. For disks that are replaced with " +
					"`create_before_destroy`.",
				Validators: []validator.String{stringvalidator.RegexMatches(volumeName, nameRule), stringvalidator.LengthAtMost(180)},
			},
			"usage_type": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "What kind of storage of the host to make the disk on: one of the usage types of the host's `storage`, or " +
					"of the annotations of its Kubernetes node.",
			},
			"copy_mode": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What becomes of the master in `source`, which is never written to: `copy-on-write` keeps what is written in an " +
					"overlay, `copy-on-read` what is read, too, and `clone` copies all of it, so that it is not needed any more. A clone is not replaced when its master is created again.",
				Validators: []validator.String{
					stringvalidator.OneOf(string(volume.CopyOnWrite), string(volume.CopyOnRead), string(volume.Clone)),
					stringvalidator.AlsoRequires(path.MatchRoot("source")),
				},
			},
			"size": schema.StringAttribute{
				Optional: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Size as a Kubernetes quantity, such as `20Gi`, rounded up to whole KiB. At least that of the master or image, " +
					"which is also the default; a blank disk needs one. It can grow, but never shrink.",
			},
			"format": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`qcow2` (default), or `raw` for a blank disk. That of an image is found out; what is set here is refused if the " +
					"image is otherwise.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{stringvalidator.OneOf("qcow2", "raw")},
			},
			"cluster_size": schema.StringAttribute{
				Optional: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Size of the clusters of a qcow2 image, from `1Ki` to `2Mi`, a power of two; QEMU's default of `64Ki` if absent. " +
					"For creation only: a later change has no effect.",
			},
			"preallocation": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What a blank disk takes of its pool at once: `off` (default), `metadata` (qcow2) or `falloc` (all of it). " +
					"For creation only: a later change has no effect.",
				Validators: []validator.String{stringvalidator.OneOf("off", "metadata", "falloc")},
			},
			"source": sourceAttribute(),
			"digest": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "What the content is known by: the digest that the reference of a container image stood for when the disk was " +
					"made, the checksum of a URL, that of a file, and of a seed one of all that it is made from but for secrets, of which it has the " +
					"versions.",
			},
			"pool": schema.StringAttribute{
				Computed: true, MarkdownDescription: "The libvirt storage pool that the disk is in.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The disk with all that is below it, for the `volume` of a machine's disk or of another disk's source.",
			},
			"timeouts": timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true}),
		},
	}
}
