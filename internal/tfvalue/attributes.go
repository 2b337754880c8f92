package tfvalue

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Required is a text that must be configured.
func Required(description string, validators ...validator.String) schema.Attribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, Validators: validators}
}

// Optional is a text that may be configured.
func Optional(description string, validators ...validator.String) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
}

// Computed is a text that can't be configured.
func Computed(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// Constant is a text that can't be configured and never changes.
func Constant(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description, PlanModifiers: keep()}
}

func keep() []planmodifier.String {
	return []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
}

// UsageType is the attribute usage_type of what is in a storage pool.
func UsageType(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: description + ": one of the usage types in the host's `storage`, or in the annotations of its Kubernetes " +
			"node. Defaults to the only one where the host has one.",
	}
}

// volumeName excludes characters that a file name or an import id can't contain.
var volumeName = stringvalidator.RegexMatches(regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`),
	"must consist of letters, digits, dots, _ and -, and not start with a dot or -")

// VolumeName is the attribute name of a storage volume, beside which there is a VolumeNamePrefix.
func VolumeName(description string, longest int) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true, PlanModifiers: keep(),
		MarkdownDescription: description + " Either this or `name_prefix`. Names that begin with `virtclaim-` are reserved.",
		Validators: []validator.String{
			volumeName, stringvalidator.LengthAtMost(longest), stringvalidator.ExactlyOneOf(path.MatchRoot("name"),
				path.MatchRoot("name_prefix")),
		},
	}
}

// VolumeNamePrefix is the attribute name_prefix of a storage volume.
func VolumeNamePrefix(description string, longest int) schema.Attribute {
	return Optional(description, volumeName, stringvalidator.LengthAtMost(longest))
}
