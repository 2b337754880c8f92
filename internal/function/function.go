// Package function has the functions that configurations call as provider::virtclaim::<name>. They ask no host and no cluster, so that they
// need no configured provider.
package function

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
)

// All are the constructors of the functions.
func All() []func() function.Function {
	return []func() function.Function{quantityToBytes, bytesToQuantity, diskXML, kubevirtMachine}
}

// pure is a function of its first argument, of which the error is, and perhaps of further ones: a tuple, the last.
type pure struct {
	name string
	is   function.Definition
	run  func(ctx context.Context, argument, more attr.Value) (any, error)
}

func (f pure) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.name
}

func (f pure) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = f.is
}

// maxMessage is in characters: what an error repeats of an argument may have any length.
const maxMessage = 300

func (f pure) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var argument, more attr.Value
	if resp.Error = req.Arguments.GetArgument(ctx, 0, &argument); resp.Error != nil {
		return
	}
	if f.is.VariadicParameter != nil {
		if resp.Error = req.Arguments.GetArgument(ctx, 1, &more); resp.Error != nil {
			return
		}
	}
	result, err := f.run(ctx, argument, more)
	if err == nil {
		resp.Error = resp.Result.Set(ctx, result)
		return
	}
	text := []rune(err.Error())
	if len(text) > maxMessage {
		text = append(text[:maxMessage-1], '…')
	}
	resp.Error = function.NewArgumentFuncError(0, string(text))
}
