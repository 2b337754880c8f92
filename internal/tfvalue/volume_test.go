package tfvalue_test

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func pointer(n int64) *int64 { return &n }

// full has a value in every field, so that a test notices a field that is not converted.
var full = volume.Volume{
	Capacity: pointer(1 << 30), CopyOnRead: true,
	Images: []volume.Image{
		{
			Type: "file", Format: "qcow2", Name: "/pool/web.qcow2",
			AccessMode: volume.AccessMode("write-exclusive"), Hosts: []string{"host-a", "host-b"}, Generation: "g1",
		},
		{
			Type: "network", Format: "raw", Protocol: "nfs", Name: "/export/a", User: "107", Group: "107",
			Servers: []volume.Server{{Host: "nfs.example"}}, AccessMode: volume.AccessMode("read-shared"), Hosts: []string{"host-a"},
		},
		{
			Type: "network", Format: "raw", Protocol: "https", Name: "/a", Query: "a=b", TLS: true, Servers: []volume.Server{{Host: "h"}},
			AccessMode: volume.AccessMode("read-shared"), Hosts: []string{"host-a"}, Binding: "b/i",
		},
		{
			Type: "network", Format: "raw", Protocol: "iscsi", Name: "iqn.2025-01.io.example:a/1",
			Servers: []volume.Server{
				{Host: "192.0.2.1", Port: pointer(3260), Transport: "tcp"}, {Transport: "unix", Socket: "/run/s"},
			},
			Auth:      &volume.Auth{Type: "iscsi", Username: "me", SecretUUID: "3f1f4a3e-5d0c-5b8e-9c5a-2f6d3c1b7a90"},
			Initiator: "iqn.2025-01.io.example:me", TLS: true, TLSVerify: true,
			AccessMode: volume.AccessMode("read-shared"), Hosts: []string{"host-a"},
		},
	},
}

func from(t *testing.T, o types.Object) (volume.Volume, bool) {
	t.Helper()
	v, ok, diags := tfvalue.VolumeFrom(o)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return v, ok
}

func TestVolume_RoundTrip(t *testing.T) {
	for name, v := range map[string]volume.Volume{
		"full": full, "empty": {}, "no capacity": {Images: []volume.Image{{Type: "block", Name: "/dev/x", Format: "raw"}}},
	} {
		got, ok := from(t, tfvalue.VolumeObject(v, tfvalue.Unknowns{}))
		if !ok || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: got %+v, want %+v", name, got, v)
		}
	}
}

func TestVolume_AbsentIsNull(t *testing.T) {
	object := tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{Type: "block", Name: "/dev/x"}}}, tfvalue.Unknowns{})
	image := object.Attributes()["images"].(types.List).Elements()[0].(types.Object)
	for name, value := range image.Attributes() {
		if isSet := name == "uri"; value.IsNull() == isSet {
			t.Errorf("%s is %s", name, value)
		}
	}
}

func TestVolume_UnknownUntilApply(t *testing.T) {
	object := tfvalue.VolumeObject(full, tfvalue.Unknowns{Capacity: true, Binding: true, Secret: true})
	v, ok := from(t, object)
	if !ok || v.Capacity != nil || v.Images[3].Auth.SecretUUID != "" {
		t.Errorf("got %+v, %t", v, ok)
	}
	v.Capacity = full.Capacity
	auth := *full.Images[3].Auth
	v.Images[3].Auth = &auth
	v.Images[2].Binding = full.Images[2].Binding
	if !reflect.DeepEqual(v, full) {
		t.Errorf("the rest became %+v", v)
	}
}

func TestVolume_FromUnknown(t *testing.T) {
	whole := tfvalue.VolumeObject(full, tfvalue.Unknowns{})
	unknownImages := with(t, whole, "images", types.ListUnknown(tfvalue.VolumeTypes["images"].(types.ListType).ElemType))
	unknownHosts := withImage(t, whole, "hosts", types.ListUnknown(types.StringType))
	for name, o := range map[string]types.Object{
		"null": types.ObjectNull(tfvalue.VolumeTypes), "unknown": tfvalue.UnknownVolume(),
		"unknown images": unknownImages, "unknown hosts": unknownHosts,
	} {
		if v, ok := from(t, o); ok {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}

func TestAsPlanned_FillsOnlyUnknown(t *testing.T) {
	planned := tfvalue.VolumeObject(full, tfvalue.Unknowns{Capacity: true, Binding: true, Secret: true})
	moved := full
	moved.Capacity = pointer(2 << 30)
	moved.Images = append([]volume.Image{}, full.Images...)
	moved.Images[3].Servers = []volume.Server{{Host: "192.0.2.9"}, {Transport: "unix", Socket: "/run/s"}}
	got, _ := from(t, tfvalue.AsPlanned(t.Context(), planned, tfvalue.VolumeObject(moved, tfvalue.Unknowns{})))
	want := full
	want.Capacity = moved.Capacity
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	actual := tfvalue.VolumeObject(moved, tfvalue.Unknowns{})
	if o := tfvalue.AsPlanned(t.Context(), tfvalue.UnknownVolume(), actual); !o.Equal(actual) {
		t.Errorf("an unknown plan became %s", o)
	}
	if o := tfvalue.AsPlanned(t.Context(), types.ObjectNull(tfvalue.VolumeTypes), actual); !o.IsNull() {
		t.Errorf("a null plan became %s", o)
	}
}

// with returns o with another value in one attribute.
func with(t *testing.T, o types.Object, name string, value attr.Value) types.Object {
	t.Helper()
	fields := o.Attributes()
	fields[name] = value
	return types.ObjectValueMust(o.AttributeTypes(t.Context()), fields)
}

// withImage returns o with another value in one attribute of its last image.
func withImage(t *testing.T, o types.Object, name string, value attr.Value) types.Object {
	t.Helper()
	images := o.Attributes()["images"].(types.List)
	elements := images.Elements()
	last := len(elements) - 1
	elements[last] = with(t, elements[last].(types.Object), name, value)
	return with(t, o, "images", types.ListValueMust(images.ElementType(t.Context()), elements))
}

func TestVolume_RefusesWhatNamesNothing(t *testing.T) {
	whole := tfvalue.VolumeObject(full, tfvalue.Unknowns{})
	for name, o := range map[string]types.Object{
		"a uri":    withImage(t, whole, "uri", types.StringValue("somewhere")),
		"a server": withImage(t, whole, "servers", types.ListValueMust(types.StringType, []attr.Value{types.StringValue("h:port")})),
	} {
		if v, ok, diags := tfvalue.VolumeFrom(o); ok || !diags.HasError() {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}
