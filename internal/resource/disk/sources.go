package disk

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The children of source, exactly one of which is set.
const (
	fromVolume    = "volume"
	fromContainer = "container_image"
	fromRoot      = "root_filesystem"
	fromURL       = "url"
	fromFile      = "file"
	fromCloudInit = "cloud_init"
	// fromEnvironment are environment variables for a machine that runs a container image.
	fromEnvironment = "environment"
	fromFiles       = "files"
	fromIgnition    = "ignition"
)

func sourceAttribute() schema.Attribute {
	children := map[string]schema.Attribute{
		fromVolume: schema.ObjectAttribute{
			Optional: true, AttributeTypes: tfvalue.VolumeTypes, Validators: []validator.Object{tfvalue.NoFolder{}},
			MarkdownDescription: "The master: the `volume` of a `virtclaim_volume_binding` or of another `virtclaim_disk` of the same " +
				"host. Requires `copy_mode`.",
		},
		fromContainer: imagesource.ContainerAttribute("A container disk in KubeVirt's format: the one raw or qcow2 file below `/disk` of "+
			"a container image. Each disk is an overlay of the file, which is downloaded once for all disks of a pool, is never written "+
			"to, and is deleted with the last of them. Of a multi-platform image, the host's architecture is used. Moving a tag has no "+
			"effect on existing disks; changing `image` or `path` forces a new resource.",
			"When the registry is contacted. `IfNotPresent` (default): not for a digest that the host has; a "+
				"tag is resolved once for all disks of an apply. `Always`: for each disk, also by digest. `Never`: the image must be "+
				"given by digest and be on the host. In no case is an image downloaded again that the host has."),
		fromRoot: imagesource.RootFilesystemAttribute("The root file system of a container image, such as an application's, and not a " +
			"disk image in one. Each layer of the container image becomes an image with what it changes of an ext4 file system, over " +
			"that of the layer below, and the disk is an overlay over the highest one. Disks share the layers that their images have in " +
			"common, from the lowest one on; a layer is downloaded once for a pool, is never written to, and is deleted with the last " +
			"disk over it. The disk has no partition table and no boot loader: a machine needs a kernel beside it. It has `16Gi`, or " +
			"`size`; a guest grows the file system. Moving a tag has no effect on existing disks; changing `image` forces a new " +
			"resource."),
		fromURL: imagesource.URLAttribute("An image on a web server: raw or qcow2, uncompressed or compressed with gzip, xz or zstd. "+
			"Interrupted downloads are resumed. New content under the same URL has no effect on existing disks; changing `checksum` "+
			"forces a new resource.",
			"With it, changing `url` does not force a new resource."),
		fromFile: imagesource.FileAttribute("An image in a file on the computer that runs Terraform: raw or qcow2, uncompressed or "+
			"compressed with gzip, xz or zstd. The file is hashed at each plan; changed content forces a new resource.",
			"After the disk was created, a file that is missing, there or in another folder, is not a change."),
		fromCloudInit:   cloudInitAttribute(),
		fromEnvironment: environmentAttribute(),
		fromFiles:       filesAttribute(),
		fromIgnition:    ignitionAttribute(),
	}
	var one []path.Expression
	for _, name := range slices.Sorted(maps.Keys(children)) {
		one = append(one, path.MatchRoot("source").AtName(name))
	}
	c := children[fromCloudInit].(schema.SingleNestedAttribute)
	c.Validators = []validator.Object{objectvalidator.ExactlyOneOf(one...)}
	children[fromCloudInit] = c
	return schema.SingleNestedAttribute{
		Optional: true, Attributes: children,
		MarkdownDescription: "Content of the disk: exactly one of these. Without it, the disk is blank.",
	}
}

func cloudInitAttribute() schema.SingleNestedAttribute {
	attributes := map[string]schema.Attribute{
		"user_data_secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret with the user data in the key `userdata` or " +
			"`userData`, instead of `user_data`."),
		"network_data_secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret with the network configuration in the key " +
			"`networkdata` or `networkData`, instead of `network_data`."),
	}
	for name, description := range map[string]string{
		"user_data": "User data, such as a text that starts with `#cloud-config`. Base64, as of `cloudinit_config` by default, is " +
			"refused: set its `gzip` and `base64_encode` to false.",
		"network_data": "Network configuration, version 1 or 2. Defaults to cloud-init's own.",
		"meta_data": "Meta data. Defaults to an `instance-id` that depends on the disk's host and name only, so that changed user " +
			"data are those of the same instance for cloud-init. No `instance-id` is added to configured meta data.",
	} {
		var others []path.Expression
		for _, other := range []string{name + "_wo", name + "_secret_ref"} {
			if _, ok := attributes[other]; ok || other == name+"_wo" {
				others = append(others, path.MatchRelative().AtParent().AtName(other))
			}
		}
		addText(attributes, name, description, stringvalidator.ConflictsWith(others...))
	}
	return schema.SingleNestedAttribute{
		Optional: true, Attributes: attributes,
		MarkdownDescription: "A cloud-init seed (NoCloud): a small read-only ISO image with the volume label `cidata`, for a machine's " +
			"disk with `device = \"cdrom\"`. Changed content creates a new seed, which is inserted while the machine runs. All users " +
			"that can read the storage pool of the host, or the CD-ROM in the guest, can read all of it.",
	}
}

// addText adds a text, and the same write-only.
func addText(attributes map[string]schema.Attribute, name, description string, check validator.String) {
	attributes[name] = tfvalue.Optional(description, check)
	attributes[name+"_wo"] = schema.StringAttribute{
		Optional: true, WriteOnly: true,
		MarkdownDescription: "Instead of `" + name + "`, write-only (Terraform 1.11 or newer): never in state or plan. Change `" + name +
			"_wo_version` with it.",
		Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName(name + "_wo_version"))},
	}
	attributes[name+"_wo_version"] = schema.Int64Attribute{
		Optional: true, MarkdownDescription: "Any number; changing it makes a new disk.",
		Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRelative().AtParent().AtName(name + "_wo"))},
	}
}
