package tfvalue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// rule refuses texts for which ok is false.
type rule struct {
	summary, description string
	ok                   func(string) bool
}

func (r rule) Description(context.Context) string         { return r.description }
func (r rule) MarkdownDescription(context.Context) string { return r.description }

func (r rule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if v := req.ConfigValue; !v.IsNull() && !v.IsUnknown() && !r.ok(v.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, r.summary, "The value "+r.description+".")
	}
}

// reserved begins the names of the domains, volumes and pools that virtclaim makes for itself.
const reserved = "virtclaim-"

// CheckReserved refuses, for what is to be made, the names that virtclaim gives to what it makes for itself, such as the domain by which
// applies take turns. It is for plans: a validator would also keep what exists under such a name from being destroyed.
func CheckReserved(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, attributes ...string) {
	for _, attribute := range attributes {
		at := path.Root(attribute)
		var planned, prior types.String
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, at, &planned)...)
		if !req.State.Raw.IsNull() {
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, at, &prior)...)
		}
		if strings.HasPrefix(planned.ValueString(), reserved) && !planned.Equal(prior) {
			resp.Diagnostics.AddAttributeError(at, "Reserved name", fmt.Sprintf("%s is %q, and names that begin with %s are those of what virtclaim "+
				"makes for itself on hosts: other applies would take it for that. Choose another one.", attribute, planned.ValueString(), reserved))
		}
	}
}

// AbsolutePath refuses what is no path of the host, or leads upwards.
func AbsolutePath() validator.String {
	return rule{
		"Invalid path", "must be an absolute path without ..",
		func(s string) bool { return strings.HasPrefix(s, "/") && !slices.Contains(strings.Split(s, "/"), "..") },
	}
}

// XMLText refuses what XML has no characters for, or would not give back as it was.
func XMLText() validator.String {
	return rule{
		"Unprintable character", "must have no control characters but line breaks (\\n) and tabs",
		func(s string) bool { return !strings.ContainsFunc(s, isNoXML) },
	}
}

// isNoXML has in it, beside what XML 1.0 forbids, the characters that its specification discourages, and the carriage return, which
// becomes a line break.
func isNoXML(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0xfffd && r <= 0xffff
}

// NoDevice refuses a device of the host, which may be a disk, and what leads to one: a path through /proc or /sys.
func NoDevice() validator.String {
	return rule{
		"Invalid path", "must not be a device, nor below /proc, /sys or /run/libvirt",
		func(s string) bool { return s == "/dev/null" || !domainxml.IsSpecial(s) },
	}
}
