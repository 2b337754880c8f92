package tfvalue

import (
	"context"
	"fmt"
	slashpath "path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// rule refuses texts for which ok returns false.
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

// reserved is the prefix of the names of virtclaim's own domains, volumes and pools.
const reserved = "virtclaim-"

// IsReserved reports whether a name is one of virtclaim's own objects on hosts.
func IsReserved(name string) bool { return strings.HasPrefix(name, reserved) }

// CheckReserved refuses the names of virtclaim's own objects, such as the mutex domain, for resources that are about to be created. It is
// called in plans: a validator would also prevent that an existing resource of such a name is destroyed.
func CheckReserved(req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, attributes ...string) {
	for _, attribute := range attributes {
		planned, prior := textIn(req.Plan.Raw, attribute), textIn(req.State.Raw, attribute)
		if IsReserved(planned) && planned != prior {
			resp.Diagnostics.AddAttributeError(path.Root(attribute), "Reserved name", fmt.Sprintf("%s is %q, and names that begin with %s "+
				"are those of what virtclaim makes for itself on hosts: other applies would take it for that. Choose another one.",
				attribute, planned, reserved))
		}
	}
}

// textIn is a string of an object, empty if it is null, unknown or missing.
func textIn(raw tftypes.Value, attribute string) (text string) {
	var all map[string]tftypes.Value
	if raw.IsNull() || raw.As(&all) != nil || !all[attribute].IsKnown() || all[attribute].IsNull() {
		return ""
	}
	_ = all[attribute].As(&text)
	return text
}

// AbsolutePath refuses strings that are no absolute path, or have .. in it.
func AbsolutePath() validator.String {
	return rule{
		"Invalid path", "must be an absolute path without ..",
		func(s string) bool { return strings.HasPrefix(s, "/") && !slices.Contains(strings.Split(s, "/"), "..") },
	}
}

// XMLText refuses texts with characters that XML does not allow, or would not preserve.
func XMLText() validator.String {
	return rule{
		"Unprintable character", "must have no control characters but line breaks (\\n) and tabs",
		func(s string) bool { return !strings.ContainsFunc(s, isNoXML) },
	}
}

// isNoXML reports whether XML 1.0 forbids a character or its specification discourages it. The carriage return is included, because it
// becomes a line break.
func isNoXML(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0xfffd && r <= 0xffff
}

// NoDevice refuses devices of the host, which may be a disk, and what is below libvirt's own runtime folders, or below /proc or /sys, where
// links such as /proc/self/root lead anywhere.
func NoDevice() validator.String {
	return rule{"Invalid path", "must not be a device, nor below /proc, /sys or /run/libvirt", func(s string) bool {
		return s == "/dev/null" || !slices.ContainsFunc([]string{"/dev/", "/proc/", "/sys/", "/run/libvirt/", "/var/run/libvirt/"},
			func(folder string) bool { return strings.HasPrefix(slashpath.Clean(s)+"/", folder) })
	}}
}
