package disk

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type sourceModel struct {
	imagesource.Source
	Volume    types.Object           `tfsdk:"volume"`
	Root      *imagesource.Reference `tfsdk:"root_filesystem"`
	CloudInit *cloudInitModel        `tfsdk:"cloud_init"`
	Env       *environmentModel      `tfsdk:"environment"`
	Files     *filesModel            `tfsdk:"files"`
	Ignition  *ignitionModel         `tfsdk:"ignition"`
}

// pinned is the source with the container image of that digest, whatever its tag stands for by now.
func (s sourceModel) pinned(digest string) sourceModel {
	if s.Container != nil {
		c := *s.Container
		c.Reference, s.Container = c.Pinned(digest), &c
	}
	if s.Root != nil {
		root := s.Root.Pinned(digest)
		s.Root = &root
	}
	return s
}

// composed is content that is composed of the configuration and of secrets.
type composed interface{ parts() []part }

// composed is nil for other sources.
func (s sourceModel) composed() composed {
	switch {
	case s.CloudInit != nil:
		return *s.CloudInit
	case s.Env != nil:
		return *s.Env
	case s.Files != nil:
		return *s.Files
	case s.Ignition != nil:
		return *s.Ignition
	}
	return nil
}

// isComposed reports whether the source is composed.
func (m model) isComposed() bool {
	return slices.Contains([]string{fromCloudInit, fromEnvironment, fromFiles, fromIgnition}, m.kind())
}

type cloudInitModel struct {
	UserData             types.String       `tfsdk:"user_data"`
	UserDataWO           types.String       `tfsdk:"user_data_wo"`
	UserDataWOVersion    types.Int64        `tfsdk:"user_data_wo_version"`
	UserDataSecretRef    *tfvalue.SecretRef `tfsdk:"user_data_secret_ref"`
	NetworkData          types.String       `tfsdk:"network_data"`
	NetworkDataWO        types.String       `tfsdk:"network_data_wo"`
	NetworkDataWOVersion types.Int64        `tfsdk:"network_data_wo_version"`
	NetworkDataSecretRef *tfvalue.SecretRef `tfsdk:"network_data_secret_ref"`
	MetaData             types.String       `tfsdk:"meta_data"`
	MetaDataWO           types.String       `tfsdk:"meta_data_wo"`
	MetaDataWOVersion    types.Int64        `tfsdk:"meta_data_wo_version"`
}

var asOptions = basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true, UnhandledNullAsEmpty: true}

// kind is the child of source that is set; empty for a blank disk, and while it is unknown.
func (m model) kind() string {
	if set := m.children(); len(set) == 1 {
		return set[0]
	}
	return ""
}

// isUndecided reports whether the kind of the source is unknown. Of several children that are not null only one will have a value.
func (m model) isUndecided() bool { return m.Source.IsUnknown() || len(m.children()) > 1 }

// children are the children of source that are not known to be null.
func (m model) children() (names []string) {
	for name, value := range m.Source.Attributes() {
		if !value.IsNull() {
			names = append(names, name)
		}
	}
	return names
}

// source is the source; children that are wholly unknown are absent.
func (m model) source(ctx context.Context, diags *diag.Diagnostics) (s sourceModel) {
	if m.kind() == fromVolume { // most disks have no other one, and the framework's conversion is slow
		return sourceModel{Volume: m.sourceVolume()}
	}
	if !m.Source.IsNull() && !m.Source.IsUnknown() {
		diags.Append(m.Source.As(ctx, &s, asOptions)...)
	}
	return s
}

// isSourceKnown reports whether all of the source is known. Write-only values may be missing: only the configuration has them.
func (m model) isSourceKnown(ctx context.Context) bool {
	raw, err := m.Source.ToTerraformValue(ctx)
	return err == nil && raw.IsFullyKnown()
}

func childPath(child string) path.Path { return path.Root("source").AtName(child) }

// checkSource refuses sources that are invalid by themselves, without access to hosts, cluster or registry.
func (m model) checkSource(ctx context.Context, diags *diag.Diagnostics) {
	s := m.source(ctx, diags)
	s.Check(path.Root("source"), diags)
	if s.Root != nil {
		s.Root.Check(childPath(fromRoot), diags)
	}
	if s.Files != nil {
		s.Files.check(m.isSourceKnown(ctx), diags)
	}
	if s.Ignition != nil {
		s.Ignition.check(diags)
	}
	if c := s.CloudInit; c != nil {
		for name, data := range map[string]types.String{"user_data": c.UserData, "user_data_wo": c.UserDataWO} {
			if err := image.CheckUserData([]byte(data.ValueString())); err != nil {
				diags.AddAttributeError(childPath(fromCloudInit).AtName(name), "Invalid user data", err.Error())
			} else {
				warnOfSeed(name, image.SuspiciousUserData([]byte(data.ValueString())), diags)
			}
		}
		warnOfSeed("network_data", image.SuspiciousNetworkData([]byte(c.NetworkData.ValueString())), diags)
		warnOfSeed("network_data_wo", image.SuspiciousNetworkData([]byte(c.NetworkDataWO.ValueString())), diags)
	}
}

// warnOfSeed says, without the data, why a guest may ignore them: other programs than cloud-init may read them.
func warnOfSeed(name, why string, diags *diag.Diagnostics) {
	if why != "" {
		diags.AddAttributeWarning(childPath(fromCloudInit).AtName(name), "cloud-init may ignore "+name, "If the guest has cloud-init: "+why+
			".")
	}
}
