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

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The children of source, exactly one of which is set.
const (
	fromVolume    = "volume"
	fromContainer = "container_image"
	fromURL       = "url"
	fromFile      = "file"
	fromCloudInit = "cloud_init"
)

func sourceAttribute() schema.Attribute {
	children := map[string]schema.Attribute{
		fromVolume: schema.ObjectAttribute{
			Optional: true, AttributeTypes: tfvalue.VolumeTypes,
			MarkdownDescription: "The master: the `volume` of a `virtclaim_volume_binding` or of another `virtclaim_disk` of the same host. " +
				"Comes with `copy_mode`.",
		},
		fromContainer: containerAttribute(),
		fromURL: object("An image that a web server has: raw or qcow2, plain or packed with gzip, xz or zstd. A connection that breaks off is "+
			"taken up where it was. What the server has later under the same URL changes nothing; another `checksum` replaces the disk.",
			map[string]schema.Attribute{
				"url": required("Its URL, `http://` or `https://`. All of it is in plan and state, also the signature of a presigned URL."),
				"checksum": optional("Checksum of the file as it is served, `sha256:<hex>` or `sha512:<hex>`. Without it, what comes is believed. " +
					"With it, another `url` for the same file does not replace the disk."),
			}),
		fromFile: object("An image in a file of the machine that runs Terraform: raw or qcow2, plain or packed with gzip, xz or zstd. Once "+
			"the disk is made, it is hashed at each plan; another content replaces the disk.", map[string]schema.Attribute{
			"path": required("Path of the file. One that is not there once the disk is made is no change."),
		}),
		fromCloudInit: cloudInitAttribute(),
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
		MarkdownDescription: "What the disk is made from: exactly one of these. Without it, the disk is blank.",
	}
}

func containerAttribute() schema.Attribute {
	return object("A container disk: the one raw or qcow2 file below `/disk` of a container image, as KubeVirt has them. Each disk is an "+
		"overlay over the file, which is fetched once for all disks of a pool, is never written to, and goes with the last of them. "+
		"An image for several architectures is taken for the host's. What a tag stands for later changes nothing; another `image` "+
		"or `path` replaces the disk.", map[string]schema.Attribute{
		"image": required("Reference of the image, by tag or digest: `quay.io/containerdisks/fedora:41`. The registry must " +
			"have TLS, unless it is on the computer that runs Terraform, or the image is named by digest: see the guide on [images](../guides/images.md#registries)."),
		"path": optional("Path of the file in the image, where it is not the only one below `/disk`."),
		"pull_policy": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "When the registry is asked. `IfNotPresent` (default): not for a digest that the host has; what a tag stands for, " +
				"once for all disks of an apply. `Always`: for each disk, also by digest. `Never`: the image must be given by digest, and " +
				"be on the host. In any case what the host has is not fetched again.",
			Validators: []validator.String{stringvalidator.OneOf(pullIfNotPresent, pullAlways, pullNever)},
		},
		"username": schema.StringAttribute{
			Optional: true, MarkdownDescription: "User at the registry. Comes with `password_wo`. Without it, Docker's configuration " +
				"(`~/.docker/config.json` and its credential helpers) holds.",
			Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("password_wo"))},
		},
		"password_wo": schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "Password or token at the registry. Write-only (Terraform 1.11 or newer): never in state or plan. It is used " +
				"when the disk is made and not kept, so it has no version.",
			Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("username"))},
		},
	})
}

func cloudInitAttribute() schema.Attribute {
	attributes := map[string]schema.Attribute{
		"user_data_secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret that has the user data as `userdata` or `userData`, instead of `user_data`."),
		"network_data_secret_ref": tfvalue.SecretRefAttribute("A Kubernetes secret that has the network configuration as `networkdata` or `networkData`, " +
			"instead of `network_data`."),
	}
	for name, description := range map[string]string{
		"user_data":    "User data, such as a text that starts with `#cloud-config`.",
		"network_data": "Network configuration, version 1 or 2. cloud-init's own default if absent.",
		"meta_data": "Meta data. If absent, an `instance-id` that stays the same as long as the disk has its host and name, so that cloud-init " +
			"takes other user data for that of the same machine. Meta data without an `instance-id` are left as they are.",
	} {
		var others []path.Expression
		for _, other := range []string{name + "_wo", name + "_secret_ref"} {
			if _, ok := attributes[other]; ok || other == name+"_wo" {
				others = append(others, path.MatchRelative().AtParent().AtName(other))
			}
		}
		attributes[name] = schema.StringAttribute{
			Optional: true, MarkdownDescription: description,
			Validators: []validator.String{stringvalidator.ConflictsWith(others...)},
		}
		attributes[name+"_wo"] = schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "Instead of `" + name + "`, write-only (Terraform 1.11 or newer): never in state or plan. Change `" + name +
				"_wo_version` with it.",
			Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName(name + "_wo_version"))},
		}
		attributes[name+"_wo_version"] = schema.Int64Attribute{
			Optional: true, MarkdownDescription: "Any number; a change of it makes a new seed.",
			Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRelative().AtParent().AtName(name + "_wo"))},
		}
	}
	return object("A seed for cloud-init (NoCloud): a small read-only ISO image with the volume label `cidata`, for a machine's disk with "+
		"`device = \"cdrom\"`. Other content makes a new seed, and the machine gets that medium while it runs. Whoever may read the "+
		"storage pool of the host, or the guest's CD-ROM, can read all of it.", attributes)
}

func object(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}

func required(description string) schema.Attribute {
	return schema.StringAttribute{
		Required: true, MarkdownDescription: description, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}

func optional(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}
