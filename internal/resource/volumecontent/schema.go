package volumecontent

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func (r *volumeContent) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: providerdata.WithURIs,
		MarkdownDescription: "Content of a volume: an image is written onto the storage of a `virtclaim_volume_binding`, whatever its " +
			"protocol. Its `volume` is the filled one, so machines and disks that refer to it wait for the content.\n\n" +
			"A volume that is not blank is refused, unless `overwrite` is set. Changed content is written again, in place: **all that " +
			"was written to the volume since is lost**. New content under the same tag or URL is no change. While machines use the " +
			"volume, also below overlays, it is not written to. After an interruption no machine is started with the volume until an " +
			"apply has filled it. Destroying the resource leaves the data on the volume, unless `erase` is set.",
		Attributes: map[string]schema.Attribute{
			"id": tfvalue.Constant("Identifies the storage."),
			"target": schema.ObjectAttribute{
				Required: true, AttributeTypes: tfvalue.VolumeTypes, Validators: []validator.Object{tfvalue.NoFolder{}},
				MarkdownDescription: "The volume to fill: the `volume` of a `virtclaim_volume_binding` with `access_mode = " +
					"\"write-exclusive\"`. Changing " +
					"it to other storage forces a new resource.",
			},
			"source":    sourceAttribute(),
			"via":       viaAttribute(),
			"overwrite": option("Whether a volume that is not blank is overwritten. Its content is lost."),
			"verify": option("Whether the host reads all of the volume back and compares it with the image. It takes about as long as " +
				"writing, and room for a sparse copy of the volume in the storage pool."),
			"erase": option("Whether destroying the resource erases the volume: all of it reads as zeros afterwards."),
			"digest": tfvalue.Computed("Digest of the content: that of the container image when it was written, the checksum of the " +
				"URL, or that of the file. Null for a URL without a checksum, and for a volume."),
			"instance_id": tfvalue.Computed("Identifies this content of this storage: it changes whenever other content is written. For " +
				"the `content` of further bindings of the same storage."),
			"volume": schema.ObjectAttribute{
				Computed: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The filled volume, with its measured capacity, for the `volume` of a machine's disk or the source " +
					"of a disk.",
			},
			"timeouts": tfvalue.Timeouts(ctx, writeTimeout, readTimeout, writeTimeout, deleteTimeout),
		},
	}
}

func option(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

func sourceAttribute() schema.Attribute {
	const rest = "The rest of a larger volume is blank."
	children := map[string]schema.Attribute{
		"container_image": imagesource.ContainerAttribute("A container disk in KubeVirt's format: the one raw or qcow2 file below "+
			"`/disk` of a container image. Of a multi-platform image, that for the host's architecture is used. "+rest,
			"When the registry is contacted. `IfNotPresent` (default): for a tag once in an apply, and not for a digest that the host "+
				"has. `Always`: also by digest. `Never`: the image must be given by digest and be on the host."),
		"url": imagesource.URLAttribute("An image on a web server: raw or qcow2, uncompressed or compressed with gzip, xz or zstd. "+
			"Interrupted downloads are resumed. "+rest, "With it, changing `url` does not have the volume written again."),
		"file": imagesource.FileAttribute("An image in a file on the computer that runs Terraform: raw or qcow2, uncompressed or "+
			"compressed with gzip, xz or zstd. The file is hashed at each plan. "+
			rest, "After the volume was filled, a file that is missing, there or in another folder, is not a change."),
		"volume": schema.ObjectAttribute{
			Optional: true, AttributeTypes: tfvalue.VolumeTypes, Validators: []validator.Object{tfvalue.NoFolder{}},
			MarkdownDescription: "Another volume, which the host copies: the `volume` of a `virtclaim_volume_binding`, or of a " +
				"`virtclaim_disk` of that host. No machine may write to it meanwhile.",
		},
	}
	var one []path.Expression
	for _, name := range slices.Sorted(maps.Keys(children)) {
		one = append(one, path.MatchRoot("source").AtName(name))
	}
	file := children["file"].(schema.SingleNestedAttribute)
	file.Validators = []validator.Object{objectvalidator.ExactlyOneOf(one...)}
	children["file"] = file
	return schema.SingleNestedAttribute{Required: true, Attributes: children, MarkdownDescription: "What is written: exactly one of these."}
}

func viaAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "What writes. Changes have no effect until the volume is written again.",
		Attributes: map[string]schema.Attribute{
			"host": tfvalue.Optional("Key of the host that writes, one of the volume's. Defaults to the first one that answers.",
				stringvalidator.LengthAtLeast(1)),
			"pod": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "Let a pod write, which mounts the claim, where hosts can't. It runs the provider's " +
					"`kubernetes.volume_image` in the claim's namespace, and is removed afterwards.",
				Attributes: map[string]schema.Attribute{
					"node_selector": schema.MapAttribute{
						Optional: true, ElementType: types.StringType, MarkdownDescription: "Labels of the nodes on which the pod may run.",
					},
				},
				Validators: []validator.Object{objectvalidator.ConflictsWith(
					path.MatchRoot("via").AtName("host"), path.MatchRoot("via").AtName("usage_type"))},
			},
			"usage_type": tfvalue.Optional("Usage type of the host whose storage pool has the image while it is written; of a volume "+
				"only what is read. Defaults to the host's first one, by name.", stringvalidator.LengthAtLeast(1)),
		},
	}
}
