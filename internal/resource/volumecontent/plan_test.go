package volumecontent

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/imagesource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func unit(change func(*volume.Image)) volume.Volume {
	i := volume.Image{
		Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:a/1", Format: "raw", AccessMode: volume.WriteExclusive, Hosts: []string{"host-a"},
		Binding: "id/instance",
	}
	if change != nil {
		change(&i)
	}
	return volume.Volume{Images: []volume.Image{i}}
}

func TestCheckTarget(t *testing.T) {
	for name, c := range map[string]struct {
		target volume.Volume
		want   string
	}{
		"bound":       {unit(nil), ""},
		"none":        {volume.Volume{}, "has no image"},
		"web":         {unit(func(i *volume.Image) { i.Protocol = "https" }), "can only be read"},
		"read-shared": {unit(func(i *volume.Image) { i.AccessMode = volume.ReadShared }), "bind it read-shared afterwards"},
		"qcow2":       {unit(func(i *volume.Image) { i.Format = "qcow2" }), "only raw volumes are filled"},
		"disk":        {unit(func(i *volume.Image) { i.Type, i.Binding = "file", "" }), "by its own source"},
		"overlay":     {volume.Volume{Images: append(unit(nil).Images, unit(nil).Images...)}, "by its own source"},
	} {
		var diags diag.Diagnostics
		checkTarget(c.target, true, &diags)
		if c.want == "" && diags.HasError() || c.want != "" && (len(diags) != 1 || !strings.Contains(diags[0].Detail(), c.want)) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// Storage that may have another address is not replaced, and may not be the same, either.
func TestIsOther(t *testing.T) {
	const claim = "id/instance/vms/data"
	on := func(protocol, server, binding string) func(*volume.Image) {
		return func(i *volume.Image) {
			i.Protocol, i.Binding, i.Servers = protocol, binding, []volume.Server{{Host: server}}
		}
	}
	for name, c := range map[string]struct {
		was, is        func(*volume.Image)
		other, certain bool
	}{
		"the same":           {nil, nil, false, true},
		"other hosts":        {nil, func(i *volume.Image) { i.Hosts = []string{"host-b"} }, false, true},
		"other content":      {nil, func(i *volume.Image) { i.Generation = "b" }, false, true},
		"another unit":       {nil, func(i *volume.Image) { i.Name = "iqn.2020-01.org.example:a/2" }, true, true},
		"not known":          {nil, func(i *volume.Image) { i.Name = "" }, false, true},
		"another NFS server": {on("nfs", "a", "x"), on("nfs", "b", "y"), true, false},
		"of the same claim":  {on("nfs", "a", claim), on("nfs", "b", claim), false, true},
		"of one binding":     {on("nfs", "a", "x"), on("nfs", "b", "x"), true, false},
		"the same monitor":   {on("rbd", "a", "x"), on("rbd", "a", "y"), false, true},
		"other monitors":     {on("rbd", "a", "x"), on("rbd", "b", "y"), false, false},
	} {
		was := unit(c.was)
		was.Images[0].Generation = "a"
		if other, certain := isOther(was, unit(c.is)); other != c.other || certain != c.certain {
			t.Errorf("%s: %t, %t", name, other, certain)
		}
	}
}

// sourced is a model with a source, and what was fetched from it.
func sourced(t *testing.T, digest string, s imagesource.Source) model {
	t.Helper()
	var schema resource.SchemaResponse
	New().Schema(t.Context(), resource.SchemaRequest{}, &schema)
	attributes := schema.Schema.Attributes["source"].GetType().(basetypes.ObjectType).AttrTypes
	o, diags := types.ObjectValueFrom(t.Context(), attributes, sourceModel{Source: s, Volume: types.ObjectNull(attributes["volume"].(basetypes.ObjectType).AttrTypes)})
	if diags.HasError() {
		t.Fatal(diags)
	}
	return model{Source: o, Digest: tfvalue.OrNull(digest), InstanceID: types.StringValue("generation")}
}

// Content that is the same by its digest is not written again, wherever it comes from, and another file of an image is.
func TestModel_Rewrites(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	url := func(address, checksum string) imagesource.Source {
		return imagesource.Source{URL: &imagesource.URL{URL: types.StringValue(address), Checksum: tfvalue.OrNull(checksum)}}
	}
	container := func(reference, file string) imagesource.Source {
		return imagesource.Source{Container: &imagesource.Container{Reference: imagesource.Reference{Image: types.StringValue(reference)}, Path: tfvalue.OrNull(file)}}
	}
	file := imagesource.Source{File: &imagesource.File{Path: types.StringValue("/missing.img")}}
	for name, c := range map[string]struct {
		was, is imagesource.Source
		want    bool
	}{
		"a file by URL":            {file, url("https://a.example/d.img", digest), false},
		"another URL":              {url("https://a.example/d.img", digest), url("https://b.example/d.img", digest), false},
		"another checksum":         {url("https://a.example/d.img", digest), url("https://a.example/d.img", "sha256:"+strings.Repeat("b", 64)), true},
		"no checksum":              {file, url("https://a.example/d.img", ""), true},
		"a tag that is now pinned": {container("a.example/i:1", ""), container("a.example/i@"+digest, ""), false},
		"another registry":         {container("a.example/i@"+digest, ""), container("b.example/i@"+digest, ""), false},
		"another tag":              {container("a.example/i:1", ""), container("a.example/i:2", ""), true},
		"another path":             {container("a.example/i@"+digest, "/a"), container("a.example/i@"+digest, "/b"), true},
	} {
		var diags diag.Diagnostics
		if got := sourced(t, "", c.is).rewrites(t.Context(), sourced(t, digest, c.was), &diags); got != c.want || diags.HasError() {
			t.Errorf("%s: %t, %v", name, got, diags)
		}
	}
}

// A plan warns of all data that its apply removes, or may remove.
func TestModel_PlanChange(t *testing.T) {
	web := func(address string) imagesource.Source {
		return imagesource.Source{URL: &imagesource.URL{URL: types.StringValue(address)}}
	}
	unknown := imagesource.Source{URL: &imagesource.URL{URL: types.StringUnknown()}}
	other := unit(func(i *volume.Image) { i.Name = "iqn.2020-01.org.example:a/2" })
	for name, c := range map[string]struct {
		is    imagesource.Source
		on    volume.Volume
		erase bool
		want  string
	}{
		"nothing":         {web("https://a.example/a"), unit(nil), true, ""},
		"other content":   {web("https://a.example/b"), unit(nil), false, "The volume iqn.2020-01.org.example:a/1 is overwritten"},
		"a source later":  {unknown, unit(nil), false, "The volume may be overwritten"},
		"other storage":   {web("https://a.example/a"), other, true, "The volume iqn.2020-01.org.example:a/1 is erased"},
		"which is kept":   {web("https://a.example/a"), other, false, ""},
		"another cluster": {web("https://a.example/a"), unit(func(i *volume.Image) { i.Protocol, i.Servers = "rbd", []volume.Server{{Host: "b"}} }), false, "The storage has another address"},
	} {
		state, plan := sourced(t, "", web("https://a.example/a")), sourced(t, "", c.is)
		was := unit(nil)
		if c.on.Images[0].Protocol == "rbd" {
			was = unit(func(i *volume.Image) { i.Protocol, i.Servers = "rbd", []volume.Server{{Host: "a"}} })
		}
		state.Target, plan.Target = tfvalue.VolumeObject(was, tfvalue.Unknowns{}), tfvalue.VolumeObject(c.on, tfvalue.Unknowns{})
		state.Volume, state.Erase = state.Target, types.BoolValue(c.erase)
		var resp resource.ModifyPlanResponse
		plan.planChange(t.Context(), state, c.on, true, &resp)
		var got string
		for _, d := range resp.Diagnostics {
			got += d.Summary()
		}
		if got != c.want {
			t.Errorf("%s: %q, and not %q", name, got, c.want)
		}
	}
}

func TestGenerationOf(t *testing.T) {
	one, two := unit(nil), unit(func(i *volume.Image) { i.Name = "iqn.2020-01.org.example:a/2" })
	seen := map[string]int{}
	for range 2 {
		for _, generation := range []string{
			generationOf(one, "sha256:a", ""), generationOf(one, "sha256:b", ""), generationOf(two, "sha256:a", ""), generationOf(one, "sha256:a", "/b"),
			generationOf(one, "", ""),
		} {
			seen[generation]++
		}
	}
	if len(seen) != 6 { // that of content without a digest is random
		t.Errorf("the generations are %v", seen)
	}
}

func TestPinned(t *testing.T) {
	for given, want := range map[string]string{
		"quay.io/owner/name:tag":        "quay.io/owner/name@sha256:ab",
		"localhost:5000/name":           "localhost:5000/name@sha256:ab",
		"localhost:5000/name:1@sha256:": "localhost:5000/name@sha256:ab",
		"debian":                        "debian@sha256:ab",
	} {
		if got := pinned(given, "sha256:ab"); got != want {
			t.Errorf("%s is %s", given, got)
		}
	}
}
