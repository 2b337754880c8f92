package disk

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type sourceModel struct {
	Volume    types.Object    `tfsdk:"volume"`
	Container *containerModel `tfsdk:"container_image"`
	URL       *urlModel       `tfsdk:"url"`
	File      *fileModel      `tfsdk:"file"`
	CloudInit *cloudInitModel `tfsdk:"cloud_init"`
}

type containerModel struct {
	Image      types.String `tfsdk:"image"`
	Path       types.String `tfsdk:"path"`
	PullPolicy types.String `tfsdk:"pull_policy"`
	Username   types.String `tfsdk:"username"`
	PasswordWO types.String `tfsdk:"password_wo"`
}

type urlModel struct {
	URL      types.String `tfsdk:"url"`
	Checksum types.String `tfsdk:"checksum"`
}

type fileModel struct {
	Path types.String `tfsdk:"path"`
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
	if c := s.Container; c != nil && !c.Image.IsUnknown() {
		given := image.Container{Reference: c.Image.ValueString()}
		_, pinned := given.IsPinned()
		if err := given.Check(); err != nil {
			diags.AddAttributeError(childPath(fromContainer).AtName("image"), "Not a container image", err.Error())
		} else if c.PullPolicy.ValueString() == pullNever && !pinned {
			diags.AddAttributeError(childPath(fromContainer).AtName("pull_policy"), "A tag needs the registry",
				"Only the registry knows what a tag stands for, and with pull_policy = \"Never\" it is not asked. Name the image by its digest: "+
					"repository@sha256:<hex>.")
		}
	}
	if c := s.CloudInit; c != nil {
		for name, data := range map[string]types.String{"user_data": c.UserData, "user_data_wo": c.UserDataWO} {
			if err := image.CheckUserData([]byte(data.ValueString())); err != nil {
				diags.AddAttributeError(childPath(fromCloudInit).AtName(name), "User data that no guest reads", err.Error())
			}
		}
	}
	if u := s.URL; u != nil && !u.URL.IsUnknown() {
		given := image.URL{URL: u.URL.ValueString()}
		if err := given.Check(); err != nil {
			diags.AddAttributeError(childPath(fromURL).AtName("url"), "Not the URL of an image", err.Error())
		} else if given.Checksum = u.Checksum.ValueString(); !u.Checksum.IsUnknown() {
			if err := given.Check(); err != nil {
				diags.AddAttributeError(childPath(fromURL).AtName("checksum"), "Not a checksum", err.Error())
			}
		}
	}
}
