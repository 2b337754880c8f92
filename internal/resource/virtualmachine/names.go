package virtualmachine

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var namesGroup = attributeGroup{attributes: namesAttributes, intent: namesIntent, read: readNames}

// oneLine matches the titles that libvirt accepts.
var oneLine = regexp.MustCompile(`^[^\n]+$`)

func namesAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"title": schema.StringAttribute{
			Optional: true, MarkdownDescription: "A short title, on one line. Invisible characters, and those that change the " +
				"direction of writing, are refused. Changed live.",
			Validators: []validator.String{stringvalidator.RegexMatches(oneLine, "must be one line")},
		},
		"description": schema.StringAttribute{
			Optional: true, MarkdownDescription: "A description, of any number of lines. Control characters other than line breaks " +
				"and tabs are refused. Changed live.",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1), tfvalue.XMLText()},
		},
	}
}

func namesIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.Title, want.Description = m.Title.ValueString(), m.Description.ValueString()
}

// readNames shows the title and description that differ from the state, of the running machine or of its persistent definition, so that an
// update sets both.
func readNames(m *model, is domainxml.Machine) {
	name := func(said types.String, stored string, live *string) types.String {
		if live != nil && said.Equal(tfvalue.OrNull(stored)) {
			return tfvalue.OrNull(*live)
		}
		return tfvalue.OrNull(stored)
	}
	m.Title, m.Description = name(m.Title, is.Title, is.Drift.Title), name(m.Description, is.Description, is.Drift.Description)
}
