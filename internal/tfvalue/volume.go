// Package tfvalue has the Terraform values that the resources share: the volume, quantities, import ids.
package tfvalue

import (
	"fmt"
	"strings"

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
	"uri":         types.StringType,
	"servers":     types.ListType{ElemType: types.StringType},
	"auth":        types.ObjectType{AttrTypes: authTypes},
	"options":     optionsType,
	"format":      types.StringType,
	"access_mode": types.StringType,
	"hosts":       types.ListType{ElemType: types.StringType},
	"binding":     types.StringType,
	"instance_id": types.StringType,
}

var authTypes = map[string]attr.Type{
	"username":    types.StringType,
	"secret_uuid": types.StringType,
}

// credentialTypes are libvirt's types of credentials by protocol.
var credentialTypes = map[string]string{"iscsi": "iscsi", "rbd": "ceph"}

type volumeModel struct {
	Capacity   types.Int64 `tfsdk:"capacity"`
	CopyOnRead types.Bool  `tfsdk:"copy_on_read"`
	Images     types.List  `tfsdk:"images"`
}

type imageModel struct {
	URI        types.String `tfsdk:"uri"`
	Servers    types.List   `tfsdk:"servers"`
	Auth       types.Object `tfsdk:"auth"`
	Options    types.Map    `tfsdk:"options"`
	Format     types.String `tfsdk:"format"`
	AccessMode types.String `tfsdk:"access_mode"`
	Hosts      types.List   `tfsdk:"hosts"`
	Binding    types.String `tfsdk:"binding"`
	InstanceID types.String `tfsdk:"instance_id"`
}

type authModel struct {
	Username   types.String `tfsdk:"username"`
	SecretUUID types.String `tfsdk:"secret_uuid"`
}

// UnknownVolume returns a volume that is known only after the apply.
func UnknownVolume() types.Object { return types.ObjectUnknown(VolumeTypes) }

// Unknowns are the fields of a planned volume that are known only after the apply. Binding is the instance of the top image's binding,
// Secret the id of its secret, Local the URI and instance of a local top image that will be created, Format the format of a top
// image that is determined when it is created, Instance the instance of a top image's content, and Place the URI of a top image that moves
// to another host.
type Unknowns struct {
	Capacity, Binding, Secret, Local, Format, Instance, Place bool
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
	uri, instance := OrNull(i.URI()), OrNull(i.Generation)
	if u.Local {
		uri, instance = types.StringUnknown(), types.StringUnknown()
	}
	if u.Place {
		uri = types.StringUnknown()
	}
	if u.Instance && i.HasInstance() {
		instance = types.StringUnknown()
	}
	format := OrNull(i.Format)
	if u.Format {
		format = types.StringUnknown()
	}
	binding := OrNull(i.Binding)
	if u.Binding {
		binding = types.StringUnknown()
	}
	return types.ObjectValueMust(imageTypes, map[string]attr.Value{
		"uri":         uri,
		"servers":     texts(i.FurtherServers()),
		"auth":        authObject(i.Auth, u.Secret),
		"options":     options(i),
		"format":      format,
		"access_mode": OrNull(string(i.AccessMode)),
		"hosts":       texts(i.Hosts),
		"binding":     binding,
		"instance_id": instance,
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
	return types.ObjectValueMust(authTypes, map[string]attr.Value{"username": OrNull(a.Username), "secret_uuid": secret})
}

func texts(from []string) attr.Value {
	return list(types.StringType, from, func(text string) attr.Value { return types.StringValue(text) })
}

var optionsType = types.MapType{ElemType: types.StringType}

// options are the settings that most images do not have: the initiator name, tls_verify = "false", and tls = "true" where the URI has no
// scheme for that.
func options(i volume.Image) attr.Value {
	set := map[string]attr.Value{}
	if i.Initiator != "" {
		set["initiator"] = types.StringValue(i.Initiator)
	}
	if isSecure := strings.HasPrefix(i.URI(), "https:") || strings.HasPrefix(i.URI(), "nbds"); i.TLS && !isSecure {
		set["tls"] = types.StringValue("true") // as domains made by hand may have it
	}
	if i.TLS && !i.TLSVerify {
		set["tls_verify"] = types.StringValue("false")
	}
	if len(set) == 0 {
		return types.MapNull(types.StringType)
	}
	return types.MapValueMust(types.StringType, set)
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
func VolumeFrom(o types.Object) (v volume.Volume, ok bool, diags diag.Diagnostics) {
	m := Fields[volumeModel](o)
	if o.IsNull() || o.IsUnknown() || !chainKnown(m.Images) {
		return volume.Volume{}, false, nil
	}
	v = volume.Volume{Capacity: number(m.Capacity), CopyOnRead: m.CopyOnRead.ValueBool()}
	for _, element := range m.Images.Elements() {
		i, err := Fields[imageModel](element.(types.Object)).image()
		if err != nil {
			return volume.Volume{}, false, diag.Diagnostics{diag.NewErrorDiagnostic("Invalid volume", err.Error())}
		}
		v.Images = append(v.Images, i)
	}
	return v, true, nil
}

// image returns the image. A local one that will be created has no URI yet, and is a file.
func (m imageModel) image() (volume.Image, error) {
	i, err := volume.ParseURI(m.URI.ValueString())
	if err != nil {
		return i, err
	}
	for _, text := range stringsOf(m.Servers) {
		server, err := volume.ParseServer(text)
		if err != nil {
			return i, fmt.Errorf("%q is no server: %w", text, err)
		}
		i.Servers = append(i.Servers, server)
	}
	if !m.Auth.IsNull() {
		a := Fields[authModel](m.Auth)
		i.Auth = &volume.Auth{Type: credentialTypes[i.Protocol], Username: a.Username.ValueString(), SecretUUID: a.SecretUUID.ValueString()}
	}
	option := func(name string) string { return valueOf(m.Options.Elements()[name]) }
	i.Initiator, i.TLS = option("initiator"), i.TLS || option("tls") == "true"
	i.TLSVerify = i.TLS && option("tls_verify") != "false"
	i.Format, i.AccessMode, i.Hosts = m.Format.ValueString(), volume.AccessMode(m.AccessMode.ValueString()), stringsOf(m.Hosts)
	i.Binding, i.Generation = m.Binding.ValueString(), m.InstanceID.ValueString()
	return i, nil
}

// stringsOf returns the texts in a list; nil for none.
func stringsOf(l types.List) (all []string) {
	for _, element := range l.Elements() {
		all = append(all, valueOf(element))
	}
	return all
}

// valueOf is the text of a value; empty for any other.
func valueOf(v attr.Value) string {
	s, _ := v.(types.String)
	return s.ValueString()
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
