// Package tfvalue has the Terraform values that the resources share: the volume, quantities, import ids.
package tfvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// VolumeTypes are the attributes of a volume. An attribute that is added later is a diff on every machine, so the list is complete from the
// start. Lists are canonical and absent values are null, because a volume has no semantic equality: for a computed value that would hide
// drift.
var VolumeTypes = map[string]attr.Type{
	"capacity":     types.Int64Type,
	"copy_on_read": types.BoolType,
	"images":       types.ListType{ElemType: imageType},
}

var imageType = types.ObjectType{AttrTypes: imageTypes}

var imageTypes = map[string]attr.Type{
	"type":        types.StringType,
	"format":      types.StringType,
	"protocol":    types.StringType,
	"name":        types.StringType,
	"query":       types.StringType,
	"servers":     types.ListType{ElemType: serverType},
	"auth":        types.ObjectType{AttrTypes: authTypes},
	"initiator":   types.StringType,
	"tls":         types.BoolType,
	"tls_verify":  types.BoolType,
	"user":        types.StringType,
	"group":       types.StringType,
	"access_mode": types.StringType,
	"hosts":       types.ListType{ElemType: types.StringType},
	"binding":     types.StringType,
	"generation":  types.StringType,
}

var serverType = types.ObjectType{AttrTypes: serverTypes}

var serverTypes = map[string]attr.Type{
	"host":      types.StringType,
	"port":      types.Int64Type,
	"transport": types.StringType,
	"socket":    types.StringType,
}

var authTypes = map[string]attr.Type{
	"type":        types.StringType,
	"username":    types.StringType,
	"secret_uuid": types.StringType,
}

type volumeModel struct {
	Capacity   types.Int64  `tfsdk:"capacity"`
	CopyOnRead types.Bool   `tfsdk:"copy_on_read"`
	Images     []imageModel `tfsdk:"images"`
}

type imageModel struct {
	Type       types.String  `tfsdk:"type"`
	Format     types.String  `tfsdk:"format"`
	Protocol   types.String  `tfsdk:"protocol"`
	Name       types.String  `tfsdk:"name"`
	Query      types.String  `tfsdk:"query"`
	Servers    []serverModel `tfsdk:"servers"`
	Auth       *authModel    `tfsdk:"auth"`
	Initiator  types.String  `tfsdk:"initiator"`
	TLS        types.Bool    `tfsdk:"tls"`
	TLSVerify  types.Bool    `tfsdk:"tls_verify"`
	User       types.String  `tfsdk:"user"`
	Group      types.String  `tfsdk:"group"`
	AccessMode types.String  `tfsdk:"access_mode"`
	Hosts      []string      `tfsdk:"hosts"`
	Binding    types.String  `tfsdk:"binding"`
	Generation types.String  `tfsdk:"generation"`
}

type serverModel struct {
	Host      types.String `tfsdk:"host"`
	Port      types.Int64  `tfsdk:"port"`
	Transport types.String `tfsdk:"transport"`
	Socket    types.String `tfsdk:"socket"`
}

type authModel struct {
	Type       types.String `tfsdk:"type"`
	Username   types.String `tfsdk:"username"`
	SecretUUID types.String `tfsdk:"secret_uuid"`
}

// UnknownVolume returns a volume that is known only after the apply.
func UnknownVolume() types.Object { return types.ObjectUnknown(VolumeTypes) }

// Unknowns are the fields of a planned volume that are known only after the apply. Binding is the instance of the top image's binding,
// Secret the id of its secret, Local the name and generation of a local top image that will be created, Format the format of a top
// image that is determined when it is created, and Generation the generation of a top image's content.
type Unknowns struct {
	Capacity, Binding, Secret, Local, Format, Generation bool
}

// VolumeObject returns v as a Terraform value, with the fields in u unknown. It is created field by field: reflection would take more time
// than the rest of a machine's refresh.
func VolumeObject(v volume.Volume, u Unknowns) types.Object {
	capacity := types.Int64PointerValue(v.Capacity)
	if u.Capacity {
		capacity = types.Int64Unknown()
	}
	return types.ObjectValueMust(VolumeTypes, map[string]attr.Value{
		"capacity":     capacity,
		"copy_on_read": types.BoolValue(v.CopyOnRead),
		"images":       list(imageType, v.Images, func(i volume.Image) attr.Value { return imageObject(i, u) }),
	})
}

// Over returns a volume whose top image is an overlay of another volume, which may be partly unknown. If the other volume is unknown, all
// but the capacity and copy_on_read are unknown.
func Over(v volume.Volume, u Unknowns, below types.Object) types.Object {
	o := VolumeObject(v, u)
	fields := o.Attributes()
	images := types.ListUnknown(imageType)
	if lower, ok := below.Attributes()["images"].(types.List); ok && !below.IsUnknown() && !lower.IsUnknown() {
		top := imageObject(v.Images[0], u)
		images = types.ListValueMust(imageType, append([]attr.Value{top}, lower.Elements()...))
	}
	fields["images"] = images
	return types.ObjectValueMust(VolumeTypes, fields)
}

func imageObject(i volume.Image, u Unknowns) attr.Value {
	name, generation := OrNull(i.Name), OrNull(i.Generation)
	if u.Local {
		name, generation = types.StringUnknown(), types.StringUnknown()
	}
	if u.Generation && i.Type != "file" {
		generation = types.StringUnknown()
	}
	format := OrNull(i.Format)
	if u.Format {
		format = types.StringUnknown()
	}
	binding := OrNull(i.Binding)
	if u.Binding {
		binding = types.StringUnknown()
	}
	tls, tlsVerify := types.BoolNull(), types.BoolNull()
	if i.TLS {
		tls, tlsVerify = types.BoolValue(true), types.BoolValue(i.TLSVerify)
	}
	return types.ObjectValueMust(imageTypes, map[string]attr.Value{
		"type":        OrNull(i.Type),
		"format":      format,
		"protocol":    OrNull(i.Protocol),
		"name":        name,
		"query":       OrNull(i.Query),
		"servers":     list(serverType, i.Servers, serverObject),
		"auth":        authObject(i.Auth, u.Secret),
		"initiator":   OrNull(i.Initiator),
		"tls":         tls,
		"tls_verify":  tlsVerify,
		"user":        OrNull(i.User),
		"group":       OrNull(i.Group),
		"access_mode": OrNull(string(i.AccessMode)),
		"hosts":       list(types.StringType, i.Hosts, func(h string) attr.Value { return types.StringValue(h) }),
		"binding":     binding,
		"generation":  generation,
	})
}

func serverObject(s volume.Server) attr.Value {
	return types.ObjectValueMust(serverTypes, map[string]attr.Value{
		"host":      OrNull(s.Host),
		"port":      types.Int64PointerValue(s.Port),
		"transport": OrNull(s.Transport),
		"socket":    OrNull(s.Socket),
	})
}

func authObject(a *volume.Auth, secretUnknown bool) attr.Value {
	if a == nil {
		return types.ObjectNull(authTypes)
	}
	secret := OrNull(a.SecretUUID)
	if secretUnknown {
		secret = types.StringUnknown()
	}
	return types.ObjectValueMust(authTypes, map[string]attr.Value{
		"type": OrNull(a.Type), "username": OrNull(a.Username), "secret_uuid": secret,
	})
}

// list returns a list, or null if it is empty, because absent values are null.
func list[T any](element attr.Type, from []T, value func(T) attr.Value) attr.Value {
	if len(from) == 0 {
		return types.ListNull(element)
	}
	values := make([]attr.Value, len(from))
	for i, f := range from {
		values[i] = value(f)
	}
	return types.ListValueMust(element, values)
}

// VolumeFrom converts a Terraform value; ok is false if the value is null, or if its chain of images is unknown. Unknown fields of a known
// chain are absent in v.
func VolumeFrom(ctx context.Context, o types.Object) (v volume.Volume, ok bool, diags diag.Diagnostics) {
	if o.IsNull() || o.IsUnknown() {
		return volume.Volume{}, false, nil
	}
	var m volumeModel
	if images, isList := o.Attributes()["images"].(types.List); !isList || !chainKnown(images) {
		return volume.Volume{}, false, nil
	}
	if diags = o.As(ctx, &m, asOptions); diags.HasError() {
		return volume.Volume{}, false, diags
	}
	v = volume.Volume{Capacity: number(m.Capacity), CopyOnRead: m.CopyOnRead.ValueBool()}
	for _, i := range m.Images {
		v.Images = append(v.Images, i.image())
	}
	return v, true, nil
}

func (m imageModel) image() volume.Image {
	i := volume.Image{
		Type: m.Type.ValueString(), Format: m.Format.ValueString(), Protocol: m.Protocol.ValueString(),
		Name: m.Name.ValueString(), Query: m.Query.ValueString(), Initiator: m.Initiator.ValueString(),
		TLS: m.TLS.ValueBool(), TLSVerify: m.TLSVerify.ValueBool(),
		User: m.User.ValueString(), Group: m.Group.ValueString(),
		AccessMode: volume.AccessMode(m.AccessMode.ValueString()), Hosts: m.Hosts, Binding: m.Binding.ValueString(),
		Generation: m.Generation.ValueString(),
	}
	for _, s := range m.Servers {
		i.Servers = append(i.Servers, volume.Server{
			Host: s.Host.ValueString(), Port: number(s.Port),
			Transport: s.Transport.ValueString(), Socket: s.Socket.ValueString(),
		})
	}
	if m.Auth != nil {
		i.Auth = &volume.Auth{
			Type: m.Auth.Type.ValueString(), Username: m.Auth.Username.ValueString(),
			SecretUUID: m.Auth.SecretUUID.ValueString(),
		}
	}
	return i
}

// number returns nil for an unknown value, for which the framework returns zero.
func number(n types.Int64) *int64 {
	if n.IsUnknown() {
		return nil
	}
	return n.ValueInt64Pointer()
}

// OrNull returns s, or null if s is empty.
func OrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
