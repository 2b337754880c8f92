package volumebinding

import (
	"context"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/direct"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// given is the secret of a direct source, which only the configuration has: write-only values are in neither plan nor state.
type given struct {
	secret types.String
	// later is set at plan, because only an apply reads the secret.
	later bool
}

func (g given) bytes() []byte {
	if g.secret.IsNull() || g.secret.IsUnknown() {
		return nil
	}
	return []byte(g.secret.ValueString())
}

// unknown reports whether the secret of a user is not known yet.
func (g given) unknown(user types.String) bool {
	return g.secret.IsUnknown() || g.later && user.ValueString() != ""
}

// directModel is the model of a source without a claim.
type directModel interface {
	source(ctx context.Context, g given, diags *diag.Diagnostics) direct.Source
	// login returns the reference to a Kubernetes secret and the write-only secret; null where the source has none.
	login() (ref types.Object, secret types.String)
}

// directs are the constructors of direct sources by attribute.
var directs = map[string]func(ctx context.Context, m model, name string, diags *diag.Diagnostics) directModel{
	"iscsi": childOf[iscsiModel], "rbd": childOf[rbdModel], "nbd": childOf[nbdModel], "gluster": childOf[glusterModel],
	"nfs": childOf[nfsModel], "http": childOf[httpModel], "file": childOf[fileModel], "block": childOf[blockModel],
}

func childOf[T directModel](ctx context.Context, m model, name string, diags *diag.Diagnostics) directModel {
	if t := child[T](ctx, m, name, diags); t != nil {
		return *t
	}
	return nil
}

// direct returns the direct source and its attribute's name; nil when the source is a claim or unknown.
func (m model) direct(ctx context.Context, diags *diag.Diagnostics) (name string, d directModel) {
	for name, read := range directs {
		if d := read(ctx, m, name, diags); d != nil {
			return name, d
		}
	}
	return "", nil
}

// writeOnly are the attributes that a plan doesn't need to identify the storage.
var writeOnly = []string{"password_wo", "password_wo_version", "key_wo", "key_wo_version"}

// isKnown reports whether all attributes of a source are known, except for those in but.
func (m model) isKnown(ctx context.Context, name string, but ...string) bool {
	o, ok := m.child(name)
	if !ok {
		return false
	}
	for attribute, value := range o.Attributes() {
		if slices.Contains(but, attribute) {
			continue
		}
		if raw, err := value.ToTerraformValue(ctx); err != nil || !raw.IsFullyKnown() {
			return false
		}
	}
	return true
}

type iscsiModel struct {
	Portal            types.String `tfsdk:"portal"`
	IQN               types.String `tfsdk:"iqn"`
	LUN               types.Int64  `tfsdk:"lun"`
	Initiator         types.String `tfsdk:"initiator"`
	Username          types.String `tfsdk:"username"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	SecretRef         types.Object `tfsdk:"secret_ref"`
}

func (i iscsiModel) login() (types.Object, types.String) { return i.SecretRef, i.PasswordWO }

func (i iscsiModel) source(ctx context.Context, g given, diags *diag.Diagnostics) direct.Source {
	return direct.ISCSI{
		Portal: i.Portal.ValueString(), IQN: i.IQN.ValueString(), LUN: i.LUN.ValueInt64(), Initiator: i.Initiator.ValueString(),
		Username: i.Username.ValueString(), Password: g.bytes(), PasswordUnknown: g.unknown(i.Username),
		PasswordVersion: strconv.FormatInt(i.PasswordWOVersion.ValueInt64(), 10), SecretRef: secretRef(ctx, i.SecretRef, diags),
	}
}

type rbdModel struct {
	Monitors     types.List   `tfsdk:"monitors"`
	Pool         types.String `tfsdk:"pool"`
	Namespace    types.String `tfsdk:"namespace"`
	Image        types.String `tfsdk:"image"`
	Username     types.String `tfsdk:"username"`
	KeyWO        types.String `tfsdk:"key_wo"`
	KeyWOVersion types.Int64  `tfsdk:"key_wo_version"`
	SecretRef    types.Object `tfsdk:"secret_ref"`
}

func (r rbdModel) login() (types.Object, types.String) { return r.SecretRef, r.KeyWO }

func (r rbdModel) source(ctx context.Context, g given, diags *diag.Diagnostics) direct.Source {
	return direct.RBD{
		Monitors: texts(ctx, r.Monitors, diags), Pool: r.Pool.ValueString(), Namespace: r.Namespace.ValueString(),
		Image: r.Image.ValueString(), Username: r.Username.ValueString(), Key: g.bytes(), KeyUnknown: g.unknown(r.Username),
		KeyVersion: strconv.FormatInt(r.KeyWOVersion.ValueInt64(), 10), SecretRef: secretRef(ctx, r.SecretRef, diags),
	}
}

func texts(ctx context.Context, list types.List, diags *diag.Diagnostics) (all []string) {
	if !list.IsNull() && !list.IsUnknown() {
		diags.Append(list.ElementsAs(ctx, &all, false)...)
	}
	return all
}

func textsByName(ctx context.Context, m types.Map, diags *diag.Diagnostics) (all map[string]string) {
	if !m.IsNull() && !m.IsUnknown() {
		diags.Append(m.ElementsAs(ctx, &all, false)...)
	}
	return all
}

func secretRef(ctx context.Context, o types.Object, diags *diag.Diagnostics) *direct.SecretRef {
	if o.IsNull() || o.IsUnknown() {
		return nil
	}
	var ref tfvalue.SecretRef
	diags.Append(o.As(ctx, &ref, basetypes.ObjectAsOptions{})...)
	return &direct.SecretRef{Namespace: ref.Namespace.ValueString(), Name: ref.Name.ValueString()}
}

// open is embedded in sources without credentials.
type open struct{}

func (open) login() (types.Object, types.String) { return types.ObjectNull(nil), types.StringNull() }

type nbdModel struct {
	open
	Server types.String `tfsdk:"server"`
	Socket types.String `tfsdk:"socket"`
	Export types.String `tfsdk:"export"`
	TLS    types.Bool   `tfsdk:"tls"`
}

func (n nbdModel) source(context.Context, given, *diag.Diagnostics) direct.Source {
	return direct.NBD{
		Server: n.Server.ValueString(), Socket: n.Socket.ValueString(), Export: n.Export.ValueString(), TLS: n.TLS.ValueBool(),
	}
}

type glusterModel struct {
	open
	Servers types.List   `tfsdk:"servers"`
	Volume  types.String `tfsdk:"volume"`
	Path    types.String `tfsdk:"path"`
	Format  types.String `tfsdk:"format"`
}

func (g glusterModel) source(ctx context.Context, _ given, diags *diag.Diagnostics) direct.Source {
	return direct.Gluster{Servers: texts(ctx, g.Servers, diags), Volume: g.Volume.ValueString(), Path: g.Path.ValueString()}
}

type nfsModel struct {
	open
	Server types.String `tfsdk:"server"`
	Path   types.String `tfsdk:"path"`
	UID    types.Int64  `tfsdk:"uid"`
	GID    types.Int64  `tfsdk:"gid"`
	Format types.String `tfsdk:"format"`
}

func (n nfsModel) source(context.Context, given, *diag.Diagnostics) direct.Source {
	return direct.NFS{Server: n.Server.ValueString(), Path: n.Path.ValueString(), UID: n.UID.ValueInt64(), GID: n.GID.ValueInt64()}
}

type httpModel struct {
	open
	URL      types.String `tfsdk:"url"`
	Insecure types.Bool   `tfsdk:"insecure"`
	Format   types.String `tfsdk:"format"`
}

func (h httpModel) source(context.Context, given, *diag.Diagnostics) direct.Source {
	return direct.HTTP{URL: h.URL.ValueString(), Insecure: h.Insecure.ValueBool()}
}

type fileModel struct {
	open
	Path   types.String `tfsdk:"path"`
	Format types.String `tfsdk:"format"`
}

func (f fileModel) source(context.Context, given, *diag.Diagnostics) direct.Source {
	return direct.File{Path: f.Path.ValueString(), Format: f.Format.ValueString()}
}

type blockModel struct{ fileModel }

func (b blockModel) source(context.Context, given, *diag.Diagnostics) direct.Source {
	return direct.Block{Path: b.Path.ValueString()}
}
