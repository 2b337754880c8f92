package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// texts are the attributes with several lines and any characters: for guests, or for people. XML's rules for description and devices_xml
// are in their own validators.
var texts = []string{
	"description", "devices_xml", "domain_xml", "user_data", "network_data", "meta_data", "config",
	"cluster_ca_certificate", "ca_certificate", "client_certificate", "command", "args", "env", "environment", "pod_template",
}

// isText reports whether the value is such a text. The content of files is a map of them; that of a binding is an identifier.
func isText(at *tftypes.AttributePath) bool {
	_, inMap := at.LastStep().(tftypes.ElementKeyString)
	return slices.Contains(texts, attributeOf(at)) || inMap && attributeOf(at) == "content"
}

// isSecret reports whether the attribute's value must not be in an error. Its characters are checked by the system that receives it.
func isSecret(attribute string) bool {
	return strings.HasSuffix(attribute, "_wo") || slices.Contains([]string{"password", "token", "client_key"}, attribute)
}

// schemas reads the schemas once. They have the types of configurations.
func schemas(next tfprotov6.ProviderServer) func(context.Context) *tfprotov6.GetProviderSchemaResponse {
	var once sync.Once
	answer := &tfprotov6.GetProviderSchemaResponse{}
	return func(ctx context.Context) *tfprotov6.GetProviderSchemaResponse {
		once.Do(func() {
			if all, err := next.GetProviderSchema(context.WithoutCancel(ctx), &tfprotov6.GetProviderSchemaRequest{}); err == nil {
				answer = all
			}
		})
		return answer
	}
}

// unprintable refuses, in names and all other one-line attributes of a configuration, characters that are not displayed as themselves:
// characters that change the direction of writing, have no width or control a terminal make one name look like another. Existing objects
// are not checked.
func unprintable(schema *tfprotov6.Schema, config *tfprotov6.DynamicValue) (found []*tfprotov6.Diagnostic) {
	if schema == nil || config == nil {
		return nil
	}
	value, err := config.Unmarshal(schema.ValueType())
	if err != nil {
		return nil // it is refused by the provider itself
	}
	refuse := func(at *tftypes.AttributePath, what, text string) {
		if !strings.ContainsFunc(text, isUnprintable) {
			return
		}
		if _, inSet := at.LastStep().(tftypes.ElementKeyValue); inSet {
			at = at.WithoutLastStep() // Terraform has no path of an element of a set
		}
		found = append(found, &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityError, Attribute: at, Summary: "Unprintable character",
			Detail: fmt.Sprintf("The %s %q has a control character, a line break, or a character that has no width or turns the "+
				"direction of writing, so that it would not be seen as it is. Take that out.", what, text),
		})
	}
	_ = tftypes.Walk(value, func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		attribute := attributeOf(at)
		var text string
		if key, ok := at.LastStep().(tftypes.ElementKeyString); ok {
			refuse(at, "key", string(key))
		}
		if !v.IsKnown() || v.IsNull() || isSecret(attribute) || isText(at) {
			return true, nil
		}
		if v.Type().Is(tftypes.String) && v.As(&text) == nil {
			refuse(at, "value of "+attribute, text)
		}
		return attribute != "volume" || v.Type().Is(tftypes.String), nil // volumes describe existing storage
	})
	return found
}

// attributeOf is the name of the last attribute in a path.
func attributeOf(at *tftypes.AttributePath) string {
	steps := at.Steps()
	for i := range steps {
		if name, ok := steps[len(steps)-1-i].(tftypes.AttributeName); ok {
			return string(name)
		}
	}
	return ""
}

func isUnprintable(r rune) bool { return tfvalue.IsInvisible(r) || r == '\n' || r == '\t' }
