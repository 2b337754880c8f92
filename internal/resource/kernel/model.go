package kernel

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
)

type model struct {
	ID           types.String   `tfsdk:"id"`
	Host         types.String   `tfsdk:"host"`
	Name         types.String   `tfsdk:"name"`
	NamePrefix   types.String   `tfsdk:"name_prefix"`
	UsageType    types.String   `tfsdk:"usage_type"`
	Source       types.Object   `tfsdk:"source"`
	Cmdline      types.String   `tfsdk:"cmdline"`
	Digest       types.String   `tfsdk:"digest"`
	Pool         types.String   `tfsdk:"pool"`
	Release      types.String   `tfsdk:"release"`
	Architecture types.String   `tfsdk:"architecture"`
	Boot         types.Object   `tfsdk:"boot"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
}

type sourceModel struct {
	Container *imagesource.Reference `tfsdk:"container_image"`
	URL       *imagesource.URL       `tfsdk:"url"`
	File      *imagesource.File      `tfsdk:"file"`
	HostPath  types.String           `tfsdk:"host_path"`
}

// files is the source as far as it is one that other resources have, too.
func (s sourceModel) files() imagesource.Source { return imagesource.Source{URL: s.URL, File: s.File} }

// bootTypes are those of a machine's boot.
var bootTypes = map[string]attr.Type{"kernel": types.StringType, "initrd": types.StringType, "cmdline": types.StringType}

var (
	sourcePath = path.Root("source")
	asOptions  = basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true, UnhandledNullAsEmpty: true}
)

// source is the source; children that are wholly unknown are absent.
func (m model) source(ctx context.Context, diags *diag.Diagnostics) (s sourceModel) {
	if !m.Source.IsNull() && !m.Source.IsUnknown() {
		diags.Append(m.Source.As(ctx, &s, asOptions)...)
	}
	return s
}

// initrdName is the name of the volume with the initial RAM disk.
func initrdName(name string) string { return name + "-initrd" }

// consoles are the serial ports by the kernel's architecture.
var consoles = map[string]string{"amd64": "ttyS0", "arm64": "ttyAMA0"}

// setBoot sets what a machine takes.
func (m *model) setBoot(kernel, initrd string) {
	cmdline := cmp.Or(m.Cmdline.ValueString(), "console="+consoles[m.Architecture.ValueString()]+" quiet panic=-1")
	m.Boot = types.ObjectValueMust(bootTypes, map[string]attr.Value{
		"kernel": types.StringValue(kernel), "initrd": types.StringValue(initrd), "cmdline": types.StringValue(cmdline),
	})
}

// paths are those of the two files; empty while they are not known.
func (m model) paths() (kernel, initrd string) {
	text := func(name string) string {
		value, _ := m.Boot.Attributes()[name].(types.String)
		return value.ValueString()
	}
	return text("kernel"), text("initrd")
}

// replacedBy are the attributes whose change makes it another kernel. Unknown values don't, nor do those that an imported kernel adopts.
func (m model) replacedBy(ctx context.Context, was model, diags *diag.Diagnostics) (paths path.Paths) {
	for _, a := range []struct {
		name    string
		was, is types.String
	}{
		{"host", was.Host, m.Host},
		{"name", was.Name, m.Name},
		{"name_prefix", was.NamePrefix, m.NamePrefix},
		{"usage_type", was.UsageType, m.UsageType},
	} {
		isAdopted := was.UsageType.IsNull() && a.was.IsNull()
		if differs(a.was, a.is) && !isAdopted {
			paths = append(paths, path.Root(a.name))
		}
	}
	if was.Source.IsNull() {
		return paths
	}
	is, before := m.source(ctx, diags), was.source(ctx, diags)
	paths = append(paths, is.files().OtherContent(before.files(), was.Digest, sourcePath)...)
	switch {
	case is.Container != nil && before.Container != nil && is.Container.IsOther(*before.Container):
		paths = append(paths, sourcePath.AtName(fromContainer).AtName("image"))
	case is.File != nil && differs(was.Digest, m.Digest):
		paths = append(paths, path.Root("digest"))
	case is.kind() != before.kind() && is.kind() != "", differs(before.HostPath, is.HostPath):
		paths = append(paths, sourcePath)
	}
	return paths
}

// kind is the child of the source that is set; empty while that is not known.
func (s sourceModel) kind() string {
	switch {
	case s.Container != nil:
		return fromContainer
	case s.URL != nil:
		return fromURL
	case s.File != nil:
		return fromFile
	case !s.HostPath.IsNull() && !s.HostPath.IsUnknown():
		return fromHost
	}
	return ""
}

// differs reports whether a configured value is known to have changed.
func differs(was, is types.String) bool { return !is.IsUnknown() && !is.Equal(was) }
