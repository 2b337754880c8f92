// Package tfvalue holds the Terraform values that the resources share: the volume, quantities, import ids.
package tfvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// VolumeTypes are the attributes of a volume. Every later one is a diff on every machine, so the shape is complete
// from the start. Lists are canonical and absent is null, because a volume has no semantic equality: on a computed
// value that would swallow drift.
var VolumeTypes = map[string]attr.Type{
	"capacity":     types.Int64Type,
	"copy_on_read": types.BoolType,
	"images":       types.ListType{ElemType: types.ObjectType{AttrTypes: imageTypes}},
}

var imageTypes = map[string]attr.Type{
	"type":        types.StringType,
	"format":      types.StringType,
	"protocol":    types.StringType,
	"name":        types.StringType,
	"query":       types.StringType,
	"servers":     types.ListType{ElemType: types.ObjectType{AttrTypes: serverTypes}},
	"auth":        types.ObjectType{AttrTypes: authTypes},
	"initiator":   types.StringType,
	"tls":         types.BoolType,
	"tls_verify":  types.BoolType,
	"user":        types.StringType,
	"group":       types.StringType,
	"access_mode": types.StringType,
	"hosts":       types.ListType{ElemType: types.StringType},
	"generation":  types.StringType,
}

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

// UnknownVolume is a volume that only apply can tell.
func UnknownVolume() types.Object { return types.ObjectUnknown(VolumeTypes) }

// Unknowns are the fields of a planned volume that only apply can tell.
type Unknowns struct {
	Capacity, SecretUUID bool
}

// VolumeObject is v as a Terraform value, with the fields in u unknown.
func VolumeObject(ctx context.Context, v volume.Volume, u Unknowns) (types.Object, diag.Diagnostics) {
	m := volumeModel{Capacity: types.Int64PointerValue(v.Capacity), CopyOnRead: types.BoolValue(v.CopyOnRead)}
	if u.Capacity {
		m.Capacity = types.Int64Unknown()
	}
	for _, i := range v.Images {
		m.Images = append(m.Images, newImageModel(i, u.SecretUUID))
	}
	return types.ObjectValueFrom(ctx, VolumeTypes, m)
}

func newImageModel(i volume.Image, secretUnknown bool) imageModel {
	m := imageModel{
		Type: OrNull(i.Type), Format: OrNull(i.Format), Protocol: OrNull(i.Protocol), Name: OrNull(i.Name),
		Query: OrNull(i.Query), Initiator: OrNull(i.Initiator), User: OrNull(i.User), Group: OrNull(i.Group),
		AccessMode: OrNull(string(i.AccessMode)), Generation: OrNull(i.Generation), Hosts: i.Hosts,
	}
	if i.TLS {
		m.TLS, m.TLSVerify = types.BoolValue(true), types.BoolValue(i.TLSVerify)
	}
	for _, s := range i.Servers {
		m.Servers = append(m.Servers, serverModel{
			Host: OrNull(s.Host), Port: types.Int64PointerValue(s.Port),
			Transport: OrNull(s.Transport), Socket: OrNull(s.Socket),
		})
	}
	if i.Auth != nil {
		m.Auth = &authModel{
			Type: OrNull(i.Auth.Type), Username: OrNull(i.Auth.Username), SecretUUID: OrNull(i.Auth.SecretUUID),
		}
		if secretUnknown {
			m.Auth.SecretUUID = types.StringUnknown()
		}
	}
	return m
}

// VolumeFrom reads a volume out of a Terraform value; ok is false when the value is null, or when so much of it is
// unknown that not even its chain of images is known. Unknown fields of a known chain come out absent.
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
	v = volume.Volume{Capacity: m.Capacity.ValueInt64Pointer(), CopyOnRead: m.CopyOnRead.ValueBool()}
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
		AccessMode: volume.AccessMode(m.AccessMode.ValueString()), Hosts: m.Hosts, Generation: m.Generation.ValueString(),
	}
	for _, s := range m.Servers {
		i.Servers = append(i.Servers, volume.Server{
			Host: s.Host.ValueString(), Port: s.Port.ValueInt64Pointer(),
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

// OrNull is s, or null where s is empty.
func OrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
