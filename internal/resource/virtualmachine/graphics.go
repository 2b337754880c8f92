package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var graphicsGroup = attributeGroup{attributes: graphicsAttributes, intent: graphicsIntent, read: readGraphics}

type graphicsModel struct {
	Type              types.String `tfsdk:"type"`
	Listen            types.String `tfsdk:"listen"`
	Port              types.Int64  `tfsdk:"port"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
}

var graphicsTypes = attributesOf(graphicsAttributes()["graphics"].GetType())

// firstPort is the port of VNC's display 0, the lowest one.
const firstPort = 5900

func graphicsAttributes() map[string]schema.Attribute {
	beside := func(name string) path.Expression { return path.MatchRelative().AtParent().AtName(name) }
	return map[string]schema.Attribute{"graphics": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A display that is served over the network. Changes take effect at the next start, except a changed " +
			"password, which takes effect live. libvirt adds a graphics card: see `video`.",
		Validators: []validator.Object{vncPassword{}},
		Attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				Required: true, MarkdownDescription: "`vnc` or `spice`.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.VNC, domainxml.Spice)},
			},
			"listen": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.Localhost),
				MarkdownDescription: "Address of the host at which the display is served. Defaults to `127.0.0.1`. The connection is " +
					"not encrypted, and a password is weak protection.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"port": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Port, from 5900. By default libvirt chooses a free one at each start.",
				Validators: []validator.Int64{int64validator.Between(firstPort, 65535)},
			},
			"password_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "Password of the display; without it, everyone who can reach the address has access. At most 8 " +
					"characters for `vnc`. Write-only (Terraform 1.11 or newer): never in state or plan. Change `password_wo_version` " +
					"with it. Adding a password to a display without one, or removing it, takes effect at the next start. libvirt stores " +
					"it in the domain's definition on the host.",
				Validators: []validator.String{
					stringvalidator.LengthAtLeast(1),
					stringvalidator.AlsoRequires(beside("password_wo_version")),
				},
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Any number; changing it sets the password again.",
				Validators: []validator.Int64{int64validator.AlsoRequires(beside("password_wo"))},
			},
		},
	}}
}

// vncLength is the number of characters of a password that VNC uses. libvirt refuses a longer one.
const vncLength = 8

// vncPassword refuses a password that is too long. The value is write-only: plan and state don't have it.
type vncPassword struct{}

func (vncPassword) Description(context.Context) string {
	return "a VNC password has at most 8 characters"
}

func (v vncPassword) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (vncPassword) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	g := tfvalue.Fields[graphicsModel](req.ConfigValue)
	if g.Type.ValueString() == domainxml.VNC && len(g.PasswordWO.ValueString()) > vncLength {
		resp.Diagnostics.AddAttributeError(req.Path.AtName("password_wo"), "Too long for VNC",
			"VNC looks at the first 8 characters of a password only, and libvirt refuses a longer one. Use a shorter one.")
	}
}

func graphicsIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.Graphics.IsNull() {
		return
	}
	g := tfvalue.Fields[graphicsModel](m.Graphics)
	want.Graphics = &domainxml.Graphics{
		Type: g.Type.ValueString(), Listen: g.Listen.ValueString(), Port: int(g.Port.ValueInt64()),
		PasswordVersion: g.PasswordWOVersion.ValueInt64Pointer(),
	}
}

// readPassword adds the display's password from the configuration, since plan and state don't have it.
func readPassword(ctx context.Context, config tfsdk.Config, want *domainxml.Machine, diags *diag.Diagnostics) {
	if want.Graphics == nil || want.Graphics.PasswordVersion == nil {
		return
	}
	var password types.String
	diags.Append(config.GetAttribute(ctx, path.Root("graphics").AtName("password_wo"), &password)...)
	want.Graphics.Password = password.ValueString()
}

func readGraphics(m *model, is domainxml.Machine) {
	m.Graphics = types.ObjectNull(graphicsTypes)
	if g := is.Graphics; g != nil {
		port := types.Int64Null()
		if g.Port != 0 {
			port = types.Int64Value(int64(g.Port))
		}
		m.Graphics = types.ObjectValueMust(graphicsTypes, map[string]attr.Value{
			"type": types.StringValue(g.Type), "listen": tfvalue.OrNull(g.Listen), "port": port,
			"password_wo": types.StringNull(), "password_wo_version": types.Int64PointerValue(g.PasswordVersion),
		})
	}
}
