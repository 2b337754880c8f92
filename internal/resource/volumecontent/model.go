package volumecontent

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var (
	targetPath = path.Root("target")
	sourcePath = path.Root("source")
)

// contents is the namespace of name-based UUIDs (RFC 9562, version 5) of what is in a volume. It must never change.
var contents = uuid.MustParse("0d2ea09e-59a6-5b0f-8a6c-0b0b6c7f4f51")

type model struct {
	ID         types.String   `tfsdk:"id"`
	Target     types.Object   `tfsdk:"target"`
	Source     types.Object   `tfsdk:"source"`
	Via        types.Object   `tfsdk:"via"`
	Overwrite  types.Bool     `tfsdk:"overwrite"`
	Verify     types.Bool     `tfsdk:"verify"`
	Erase      types.Bool     `tfsdk:"erase"`
	Digest     types.String   `tfsdk:"digest"`
	InstanceID types.String   `tfsdk:"instance_id"`
	Volume     types.Object   `tfsdk:"volume"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

type sourceModel struct {
	imagesource.Source
	Volume types.Object `tfsdk:"volume"`
}

type viaModel struct {
	Host      types.String `tfsdk:"host"`
	UsageType types.String `tfsdk:"usage_type"`
	Pod       types.Object `tfsdk:"pod"`
}

type podModel struct {
	NodeSelector types.Map `tfsdk:"node_selector"`
}

// pod is the pod that writes; nil if a host does.
func (v viaModel) pod(ctx context.Context, diags *diag.Diagnostics) *podModel {
	if v.Pod.IsNull() || v.Pod.IsUnknown() {
		return nil
	}
	var p podModel
	diags.Append(v.Pod.As(ctx, &p, asOptions)...)
	return &p
}

var asOptions = basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true, UnhandledNullAsEmpty: true}

// source is the source; children that are wholly unknown are absent.
func (m model) source(ctx context.Context, diags *diag.Diagnostics) (s sourceModel) {
	if !m.Source.IsNull() && !m.Source.IsUnknown() {
		diags.Append(m.Source.As(ctx, &s, asOptions)...)
	}
	return s
}

// isSourceKnown reports whether all of the source is known. Write-only values are null.
func (m model) isSourceKnown(ctx context.Context) bool {
	raw, err := m.Source.ToTerraformValue(ctx)
	return err == nil && raw.IsFullyKnown()
}

// kind is the child of source that is set; empty while it is unknown.
func (m model) kind() string {
	var set []string
	for name, value := range m.Source.Attributes() {
		if !value.IsNull() {
			set = append(set, name)
		}
	}
	if len(set) != 1 {
		return ""
	}
	return set[0]
}

// master is the volume in source as far as it is known.
func (m model) master(_ context.Context, diags *diag.Diagnostics) (v volume.Volume, known bool) {
	o, ok := m.Source.Attributes()["volume"].(types.Object)
	if !ok {
		return v, false
	}
	v, known, d := tfvalue.VolumeFrom(o)
	diags.Append(d...)
	return v, known && len(v.Images) > 0
}

func (m model) via(ctx context.Context, diags *diag.Diagnostics) (v viaModel) {
	if !m.Via.IsNull() && !m.Via.IsUnknown() {
		diags.Append(m.Via.As(ctx, &v, asOptions)...)
	}
	return v
}

// target is the volume to fill as far as it is known.
func (m model) target(_ context.Context, diags *diag.Diagnostics) (v volume.Volume, known bool) {
	v, known, d := tfvalue.VolumeFrom(m.Target)
	diags.Append(d...)
	return v, known && len(v.Images) > 0
}

// generationOf identifies a content of a storage: that of a digest and, in a container image, of a path. It is random if the digest is not
// known.
func generationOf(v volume.Volume, digest, file string) string {
	if digest == "" {
		return uuid.NewString()
	}
	parts := []string{v.Images[0].Protocol, v.Images[0].Name, digest}
	if file != "" {
		parts = append(parts, file)
	}
	return uuid.NewSHA1(contents, []byte(strings.Join(parts, "\x00"))).String()
}

// file is the path in a container image; empty without one.
func (s sourceModel) file() string {
	if s.Container == nil {
		return ""
	}
	return s.Container.Path.ValueString()
}
