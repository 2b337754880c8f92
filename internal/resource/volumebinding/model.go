package volumebinding

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ids is the namespace of the bindings' name-based UUIDs (RFC 9562, version 5). It must never change.
var ids = uuid.MustParse("7c1f6f0e-8f0b-5d0a-9c55-3b6f7a6f2a11")

type model struct {
	ID          types.String   `tfsdk:"id"`
	Name        types.String   `tfsdk:"name"`
	Hosts       types.Set      `tfsdk:"hosts"`
	AccessMode  types.String   `tfsdk:"access_mode"`
	Content     types.String   `tfsdk:"content"`
	Source      types.Object   `tfsdk:"source"`
	Volume      types.Object   `tfsdk:"volume"`
	Credentials types.Map      `tfsdk:"credentials"`
	Reserved    types.Bool     `tfsdk:"reserved"`
	Attached    types.Bool     `tfsdk:"attached"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

// claimSource is the attribute of a source that is a claim.
const claimSource = "persistent_volume_claim"

type claimModel struct {
	tfvalue.Claim
	CreateDiskImage types.Bool   `tfsdk:"create_disk_image"`
	SharedFolder    types.Bool   `tfsdk:"shared_folder"`
	Format          types.String `tfsdk:"format"`
	UID             types.Int64  `tfsdk:"uid"`
	GID             types.Int64  `tfsdk:"gid"`
	SelectNode      types.Bool   `tfsdk:"select_node"`
	Attach          types.Bool   `tfsdk:"attach"`
}

// Options are those of the claim, and those that only a binding has.
func (c claimModel) Options(ctx context.Context, diags *diag.Diagnostics) claim.Options {
	o := c.Claim.Options(ctx, diags)
	o.Attach, o.SharedFolder = c.Attach.ValueBool(), c.SharedFolder.ValueBool()
	if !c.UID.IsNull() {
		o.User = strconv.FormatInt(c.UID.ValueInt64(), 10)
	}
	if !c.GID.IsNull() {
		o.Group = strconv.FormatInt(c.GID.ValueInt64(), 10)
	}
	return o
}

// id is the binding's UUID; known before an apply only if the provider has an owner.
func id(owner, name string) types.String {
	if owner == "" {
		return types.StringUnknown()
	}
	return types.StringValue(uuid.NewSHA1(ids, []byte(owner+"\x00"+name)).String())
}

// child is the object of that name in source; ok is false when it is null or unknown.
func (m model) child(name string) (o types.Object, ok bool) {
	if m.Source.IsNull() || m.Source.IsUnknown() {
		return o, false
	}
	o, ok = m.Source.Attributes()[name].(types.Object)
	return o, ok && !o.IsNull() && !o.IsUnknown()
}

// claim is the claim in source, or nil.
func (m model) claim(ctx context.Context, diags *diag.Diagnostics) *claimModel {
	return child[claimModel](ctx, m, claimSource, diags)
}

func child[T any](ctx context.Context, m model, name string, diags *diag.Diagnostics) *T {
	o, ok := m.child(name)
	if !ok {
		return nil
	}
	return objectAs[T](ctx, o, diags)
}

// objectAs is a value of an object; nil if it is null or unknown.
func objectAs[T any](ctx context.Context, o types.Object, diags *diag.Diagnostics) *T {
	if o.IsNull() || o.IsUnknown() {
		return nil
	}
	var t T
	d := o.As(ctx, &t, basetypes.ObjectAsOptions{})
	if diags.Append(d...); d.HasError() { // what has failed before must not keep it from being reverted
		return nil
	}
	return &t
}

// hostKeys are the keys of the hosts, sorted.
func (m model) hostKeys(ctx context.Context, diags *diag.Diagnostics) []string {
	var keys []string
	diags.Append(m.Hosts.ElementsAs(ctx, &keys, false)...)
	slices.Sort(keys)
	return keys
}

// instance is the reference to the binding that its volume carries: the one in state, or a new one. A binding of an older virtclaim without
// an instance keeps none.
func (m model) instance(ctx context.Context, state *model, own privateState, diags *diag.Diagnostics) string {
	if state != nil {
		v, known, d := tfvalue.VolumeFrom(state.Volume)
		diags.Append(d...)
		if known && v.Images[0].Binding != "" {
			return v.Images[0].Binding
		}
	}
	ref := volume.BindingRef{ID: m.ID.ValueString(), Instance: volume.InstanceOf(own.Nonce)}
	if c := m.claim(ctx, diags); c != nil {
		ref.Namespace, ref.Claim = c.Namespace.ValueString(), c.ClaimName.ValueString()
	}
	return ref.String()
}

// held is v with the mode, the hosts, the secret, the content and the instance of this binding.
func (m model) held(v volume.Volume, hosts []string, instance string) volume.Volume {
	v.Images = slices.Clone(v.Images)
	if isDiskImage(v) {
		v.Capacity = nil // the claim has the size of the filesystem only
	}
	top := &v.Images[0]
	if top.HasInstance() {
		top.Generation = m.Content.ValueString()
	}
	top.AccessMode, top.Hosts, top.Binding = volume.AccessMode(m.AccessMode.ValueString()), hosts, instance
	if top.Auth != nil {
		auth := *top.Auth
		auth.SecretUUID = m.ID.ValueString()
		top.Auth = &auth
	}
	return v
}

// credentialVersions are the versions of the credentials in state, by host.
func (m model) credentialVersions(ctx context.Context, diags *diag.Diagnostics) map[string]string {
	versions := map[string]string{}
	if !m.Credentials.IsNull() && !m.Credentials.IsUnknown() {
		diags.Append(m.Credentials.ElementsAs(ctx, &versions, false)...)
	}
	return versions
}
