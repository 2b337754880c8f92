package tfvalue

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// SecretRef is the value of a SecretRefAttribute: a reference to a Kubernetes secret.
type SecretRef struct {
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
}

// SecretRefAttribute returns an optional reference to a Kubernetes secret.
func SecretRefAttribute(description string) schema.Attribute {
	name := ObjectName()
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{Required: true, MarkdownDescription: "The secret's namespace.", Validators: name},
			"name":      schema.StringAttribute{Required: true, MarkdownDescription: "The secret's name.", Validators: name},
		},
	}
}
