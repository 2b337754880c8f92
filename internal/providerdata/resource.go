package providerdata

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Managed is what each resource implements.
type Managed interface {
	resource.ResourceWithConfigure
	resource.ResourceWithModifyPlan
	resource.ResourceWithValidateConfig
	resource.ResourceWithImportState
	resource.ResourceWithUpgradeState
	resource.ResourceWithMoveState
}

// Resource is embedded by each resource.
type Resource struct {
	// TypeName is the resource's name after that of the provider, such as disk.
	TypeName string
	// Provider is nil before the provider has been configured, as during validation.
	Provider *Data
}

// Metadata names the resource.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.TypeName
}

// Configure takes the data of the configured provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.Provider = from(req.ProviderData, &resp.Diagnostics)
}

// MoveState takes over nothing.
func (r *Resource) MoveState(context.Context) []resource.StateMover { return nil }

// WithURIs is the version of the schemas of resources whose volumes have URIs.
const WithURIs = 1

// UpgradeState refuses states from before that: none was written by a released version.
func (r *Resource) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	refuse := func(_ context.Context, _ resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
		resp.Diagnostics.AddError("State of an unreleased version", "This state was written before 0.1.0, when volumes had another form. "+
			"Nothing has been changed. Destroy with the version that wrote it, or go on with what there is: terraform state rm, and "+
			"terraform import with this version.")
	}
	return map[int64]resource.StateUpgrader{0: {StateUpgrader: refuse}}
}

// Action is embedded by each action.
type Action struct {
	// TypeName is the action's name after that of the provider, such as reboot.
	TypeName string
	// Provider is nil before the provider has been configured, as during validation.
	Provider *Data
}

// Metadata names the action.
func (a *Action) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + a.TypeName
}

// Configure takes the data of the configured provider.
func (a *Action) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.Provider = from(req.ProviderData, &resp.Diagnostics)
}

// DataSource is embedded by each data source.
type DataSource struct {
	// TypeName is the data source's name after that of the provider, such as host.
	TypeName string
	// Unreadable is the summary of errors, and Unasked what is the case while the provider is unknown, such as "no host can be asked".
	Unreadable, Unasked string
	// Provider is nil before the provider has been configured, as during validation.
	Provider *Data
}

// Metadata names the data source.
func (d *DataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + d.TypeName
}

// Configure takes the data of the configured provider.
func (d *DataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.Provider = from(req.ProviderData, &resp.Diagnostics)
}
