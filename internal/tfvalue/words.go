package tfvalue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Words accepts only these texts.
type Words struct {
	Accepted []string
	// Instead says what to do instead of writing a word that other documents have, in small letters.
	Instead map[string]string
}

// Description describes the accepted texts.
func (w Words) Description(context.Context) string {
	return "must be one of: " + strings.Join(w.Accepted, ", ")
}

// MarkdownDescription describes the accepted texts.
func (w Words) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

// ValidateString refuses all others.
func (w Words) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	is := req.ConfigValue.ValueString()
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || slices.Contains(w.Accepted, is) {
		return
	}
	detail := fmt.Sprintf("%q %s.", is, w.Description(ctx))
	small := strings.ToLower(is)
	if instead := w.Instead[small]; instead != "" {
		detail += " " + instead
	} else if slices.Contains(w.Accepted, small) {
		detail += " Write " + small + "."
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Unknown word", detail)
}
