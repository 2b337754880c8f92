package function

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
)

// call runs a function as the framework does.
func call(t *testing.T, f function.Function, arguments ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()
	var definition function.DefinitionResponse
	f.Definition(t.Context(), function.DefinitionRequest{}, &definition)
	result, err := definition.Definition.Return.NewResultData(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp := function.RunResponse{Result: result}
	f.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(arguments)}, &resp)
	return resp.Result.Value(), resp.Error
}

// refuses checks that a function refuses an argument, in words that fit.
func refuses(t *testing.T, f function.Function, argument attr.Value, want string) {
	t.Helper()
	switch got, err := call(t, f, argument); {
	case err == nil:
		t.Errorf("%.80s is %s; want %q", argument, got, want)
	case err.FunctionArgument == nil || *err.FunctionArgument != 0 || utf8.RuneCountInString(err.Text) > maxMessage || !strings.Contains(err.Text, want):
		t.Errorf("%.80s: %+v; want %q", argument, err, want)
	}
}

// Each function is complete: the framework checks what it can.
func TestAll_AreDefined(t *testing.T) {
	names := map[string]bool{}
	for _, f := range All() {
		var is function.MetadataResponse
		f().Metadata(t.Context(), function.MetadataRequest{}, &is)
		var has function.DefinitionResponse
		f().Definition(t.Context(), function.DefinitionRequest{}, &has)
		d := has.Definition
		var found function.DefinitionValidateResponse
		d.ValidateImplementation(context.Background(), function.DefinitionValidateRequest{FuncName: is.Name}, &found)
		if found.Diagnostics.HasError() || names[is.Name] || d.Summary == "" || d.MarkdownDescription == "" || len(d.Parameters) != 1 {
			t.Errorf("%s: %v, %+v", is.Name, found.Diagnostics, d)
		}
		names[is.Name] = true
	}
	if !names["quantity_to_bytes"] || !names["bytes_to_quantity"] || !names["disk_xml"] || !names["kubevirt_machine"] || len(names) != 4 {
		t.Errorf("the functions are %v", names)
	}
}
