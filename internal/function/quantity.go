package function

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// quantityToBytes is a size in Kubernetes' notation as a number.
func quantityToBytes() function.Function {
	return pure{"quantity_to_bytes", function.Definition{
		Summary: "The number of bytes of a Kubernetes quantity",
		MarkdownDescription: "Returns the number of bytes that a size in Kubernetes' notation is, such as 10737418240 of `10Gi`, to " +
			"compare sizes or to calculate with them. Nothing is rounded: what is negative, no whole number of bytes or larger than a " +
			"signed number of 64 bits is refused.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:                "quantity",
			MarkdownDescription: "The size, such as `10Gi`, `512M`, `1.5Gi`, `1e9` or `1073741824`.",
		}},
		Return: function.Int64Return{},
	}, func(_ context.Context, quantity, _ attr.Value) (any, error) {
		return tfvalue.NewQuantity(quantity.(types.String).ValueString()).ExactBytes()
	}}
}

// bytesToQuantity is its inverse. Its parameter is no Int64Parameter, whose fractions the framework refuses in words of its own.
func bytesToQuantity() function.Function {
	return pure{"bytes_to_quantity", function.Definition{
		Summary: "A number of bytes as a Kubernetes quantity",
		MarkdownDescription: "Returns a number of bytes in Kubernetes' notation, with the largest of the units `Ki`, `Mi`, `Gi`, `Ti`, " +
			"`Pi` and `Ei` that divides it, such as `10Gi` of 10737418240; without a unit if none does. The `capacity` of a volume " +
			"becomes the `size` of a disk by it. What is negative, no whole number or larger than a signed number of 64 bits is refused.",
		Parameters: []function.Parameter{function.NumberParameter{Name: "bytes", MarkdownDescription: "The number of bytes."}},
		Return:     function.StringReturn{},
	}, func(_ context.Context, bytes, _ attr.Value) (any, error) {
		quantity, err := tfvalue.ExactQuantity(bytes.(types.Number).ValueBigFloat())
		return quantity.ValueString(), err
	}}
}
