package disk

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func (r *disk) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: providerdata.WithURIs,
		MarkdownDescription: "A disk on one host: an overlay or a clone of any volume, an image from a container registry, a web " +
			"server or a file, a cloud-init seed, or a blank disk. Its `volume` is used for the disks of machines, or as the master " +
			"of further disks.\n\nDestroying or replacing a disk deletes its data. Increasing `size` resizes the disk in place, also " +
			"while a machine runs with it; decreasing it is refused. Changing `name`, `name_prefix`, `copy_mode`, `format`, " +
			"`usage_type` (unless it is the same storage pool), the master or the configured content forces a new resource. A master " +
			"that has moved or grown, and new content under the same tag or URL, do not. Another `host` moves the disk, together " +
			"with its machine: see the guide [Moving machines](../guides/moving-machines.md#disks-that-go-along).",
		Attributes: map[string]schema.Attribute{
			"id": tfvalue.Constant("`<host>/<pool>/<volume>`, which is also the import id."),
			"host": tfvalue.Required("Key of the provider's `hosts` that has the disk, and manages it. Can be changed in place to " +
				"another one of `hosts`. To any other host the disk's content is moved; a seed and an environment are replaced."),
			"hosts": schema.SetAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.Set{setvalidator.SizeAtLeast(1)},
				MarkdownDescription: "Keys of all hosts that may open the disk's file, because the pool of the usage type is the same " +
					"folder of a shared filesystem on each, with the same path. Defaults to `host`, which must be one of them. That each " +
					"host sees the file is checked before the disk is used. Only for qcow2 disks that are not made from a container " +
					"image. Can be changed in place, unless a machine on a removed host has the disk.",
			},
			"name": tfvalue.VolumeName("Name of the storage volume, unique in its pool.", 200),
			"name_prefix": tfvalue.VolumeNamePrefix("Prefix of a generated name of the storage volume. For disks that are replaced with "+
				"`create_before_destroy`.", 180),
			"usage_type": tfvalue.UsageType("Kind of storage on which the disk is created"),
			"copy_mode": tfvalue.Optional("How the master in `source` is used; it is never written to. `copy-on-write` stores writes in "+
				"an overlay, `copy-on-read` also what has been read, and `clone` copies all of it, so that the master is not "+
				"needed afterwards. A clone is not replaced when its master is created again.",
				tfvalue.Words{
					Accepted: []string{string(volume.CopyOnWrite), string(volume.CopyOnRead), string(volume.Clone)},
					Instead:  map[string]string{"none": "Leave the disk out: a machine has the volume of a binding directly."},
				},
				stringvalidator.AlsoRequires(path.MatchRoot("source"))),
			"size": schema.StringAttribute{
				Optional: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Size as a Kubernetes quantity, such as `20Gi`; below `1Mi` a suffix is required. Rounded up to " +
					"whole 4 KiB. At least that of the master or image, which is also the default; required for a blank disk. The size " +
					"of a bound master is measured: that of its storage counts, and not the capacity of its PersistentVolume. It can be " +
					"increased, but not decreased.",
			},
			"format": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`qcow2` (default), or `raw` for a blank disk. The format of an image is detected; setting " +
					"another one is an error.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{stringvalidator.OneOf("qcow2", "raw")},
			},
			"cluster_size": schema.StringAttribute{
				Optional: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Cluster size of a qcow2 image, a power of two from `1Ki` to `2Mi`. Defaults to QEMU's `64Ki`. " +
					"Only used at creation: later changes have no effect.",
			},
			"preallocation": tfvalue.Optional("Preallocation of a blank disk: `off` (default), `metadata` (qcow2) or `falloc` (the whole "+
				"size). Only used at creation: later changes have no effect.", stringvalidator.OneOf("off", "metadata", "falloc")),
			"source": sourceAttribute(),
			"digest": tfvalue.Computed("Digest of the content: that of the container image when the disk was created, the checksum of " +
				"the URL or of the file, or, for a seed, a digest of all its parts, with the versions of secrets instead of " +
				"their values."),
			"pool":                tfvalue.Constant("The libvirt storage pool of the disk."),
			"image_configuration": configurationAttribute(),
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The disk with its backing images, for the `volume` of a machine's disk or of another disk's source.",
			},
			"timeouts": tfvalue.Timeouts(ctx, createTimeout, readTimeout, updateTimeout, deleteTimeout),
		},
	}
}
