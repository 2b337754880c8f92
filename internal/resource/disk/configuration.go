package disk

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func configurationAttribute() schema.Attribute {
	texts := func(description string) schema.Attribute {
		return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "Configuration of the container image when the disk was created; null without `source.root_filesystem`.",
		Attributes: map[string]schema.Attribute{
			"architecture": tfvalue.Computed("Architecture that the image is for, in OCI's notation, such as `amd64` or `arm/v7`."),
			"entrypoint":   texts("Program with its first arguments; null without one. `command` follows."),
			"command":      texts("Default arguments of `entrypoint`, or the program; null without one."),
			"environment": schema.MapAttribute{
				Computed: true, ElementType: types.StringType, MarkdownDescription: "Environment variables of the program.",
			},
			"user": tfvalue.Computed("User that runs the program, by name or number, perhaps with a group behind a colon; null for " +
				"root."),
			"working_directory": tfvalue.Computed("Folder in which the program starts; null for `/`."),
			"stop_signal":       tfvalue.Computed("Signal that ends the program, such as `SIGTERM`; null for that."),
		},
	}
}

// configurationOf is the configuration of a container image.
func configurationOf(is image.RootFS) types.Object {
	texts := func(all []string) attr.Value {
		if len(all) == 0 {
			return types.ListNull(types.StringType)
		}
		var values []attr.Value
		for _, s := range all {
			values = append(values, types.StringValue(s))
		}
		return types.ListValueMust(types.StringType, values)
	}
	environment := map[string]attr.Value{}
	for _, variable := range is.Environment {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = types.StringValue(value)
	}
	return types.ObjectValueMust(tfvalue.ImageConfigurationTypes, map[string]attr.Value{
		"architecture": types.StringValue(is.Architecture), "entrypoint": texts(is.Entrypoint), "command": texts(is.Command),
		"environment": types.MapValueMust(types.StringType, environment), "user": tfvalue.OrNull(is.User),
		"working_directory": tfvalue.OrNull(is.WorkingDirectory), "stop_signal": tfvalue.OrNull(is.StopSignal),
	})
}
