package imagesource

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// ContainerAttribute is an optional container_image; pullPolicy describes its pull_policy.
func ContainerAttribute(description, pullPolicy string) schema.Attribute {
	attributes := referenceAttributes(pullPolicy, pullIfNotPresent, pullAlways, pullNever)
	attributes["path"] = text(false, "Path of the file in the image, if there is more than one below `/disk`.")
	return object(description, attributes)
}

// UnpackedAttribute is an optional container_image whose files are read.
func UnpackedAttribute(description string) schema.Attribute {
	return object(description, referenceAttributes("When the registry is asked what a tag stands for. `IfNotPresent` (default): once in "+
		"an apply. `Always`: each time.", pullIfNotPresent, pullAlways))
}

// RootFilesystemAttribute is an optional root_filesystem.
func RootFilesystemAttribute(description string) schema.Attribute {
	return object(description, referenceAttributes("When the registry is asked what a tag stands for. `IfNotPresent` (default): once for "+
		"all disks of an apply. `Always`: for each disk. In either case it is asked which layers the image has, and no layer is "+
		"downloaded again that the host has. `Never`: it is asked for nothing. The image must be given by digest, and the pool must have "+
		"a disk of it that was made otherwise.", pullIfNotPresent, pullAlways, pullNever))
}

func referenceAttributes(pullPolicy string, policies ...string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image": text(true, "Reference of the image, by tag or digest: `quay.io/containerdisks/fedora:41`. The registry must "+
			"have TLS, unless it is on the computer that runs Terraform, or the image is named by digest: see the guide on "+
			"[images](../guides/images.md#registries)."),
		"pull_policy": schema.StringAttribute{
			Optional: true, MarkdownDescription: pullPolicy,
			Validators: []validator.String{stringvalidator.OneOf(policies...)},
		},
		"username": schema.StringAttribute{
			Optional: true, MarkdownDescription: "User at the registry. Requires `password_wo`. Defaults to the credentials of " +
				"Docker's configuration (`~/.docker/config.json` and its credential helpers).",
			Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("password_wo"))},
		},
		"password_wo": schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "Password or token at the registry. Write-only (Terraform 1.11 or newer): never in state or plan. " +
				"It is used at creation only and not stored, so it has no version.",
			Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("username"))},
		},
	}
}

// URLAttribute is an optional url; otherURL says what becomes of another URL with the same checksum.
func URLAttribute(description, otherURL string) schema.Attribute {
	return object(description, map[string]schema.Attribute{
		"url": text(true, "URL of the image, `http://` or `https://`. All of it is stored in plan and state, also the "+
			"signature of a presigned URL."),
		"checksum": text(false, "Checksum of the file as served, `sha256:<hex>` or `sha512:<hex>`. Without a checksum the "+
			"download is not verified. "+otherURL),
	})
}

// FileAttribute is an optional file; missing says what becomes of a file that is missing later.
func FileAttribute(description, missing string) schema.Attribute {
	return object(description, map[string]schema.Attribute{"path": text(true, "Path of the file. "+missing)})
}

func object(description string, attributes map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}

func text(isRequired bool, description string) schema.Attribute {
	return schema.StringAttribute{
		Required: isRequired, Optional: !isRequired, MarkdownDescription: description,
		Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}
