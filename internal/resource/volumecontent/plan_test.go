package volumecontent

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

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

func TestIsOther(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*volume.Image)
		want   bool
	}{
		"the same":      {nil, false},
		"other hosts":   {func(i *volume.Image) { i.Hosts = []string{"host-b"} }, false},
		"other content": {func(i *volume.Image) { i.Generation = "b" }, false},
		"another unit":  {func(i *volume.Image) { i.Name = "iqn.2020-01.org.example:a/2" }, true},
		"not known":     {func(i *volume.Image) { i.Name = "" }, false},
	} {
		if got := isOther(unit(func(i *volume.Image) { i.Generation = "a" }), unit(c.change)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGenerationOf(t *testing.T) {
	one, two := unit(nil), unit(func(i *volume.Image) { i.Name = "iqn.2020-01.org.example:a/2" })
	seen := map[string]int{}
	for range 2 {
		for _, generation := range []string{
			generationOf(one, "sha256:a"), generationOf(one, "sha256:b"), generationOf(two, "sha256:a"), generationOf(one, ""),
		} {
			seen[generation]++
		}
	}
	if len(seen) != 5 { // that of content without a digest is random
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
