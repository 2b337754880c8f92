package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func TestDigest_OtherContentReplaces(t *testing.T) {
	image := func(reference, path string) any {
		return map[string]any{"container_image": map[string]any{"image": reference, "path": path}}
	}
	file := map[string]any{"file": someFile}
	for name, c := range map[string]struct {
		was, is       any
		proven, given string
		want          string
	}{
		"nothing changed":       {image("example.org/image:v1", "a"), image("example.org/image:v1", "a"), "sha256:ab", "sha256:ab", "[]"},
		"another tag":           {image("example.org/image:v1", "a"), image("example.org/image:v2", "a"), "sha256:ab", "sha256:ab", "[source.container_image.image]"},
		"another file in it":    {image("example.org/image:v1", "a"), image("example.org/image:v1", "b"), "sha256:ab", "sha256:ab", "[source.container_image.path]"},
		"another URL":           {map[string]any{"url": map[string]any{"url": "https://example.org/other"}}, map[string]any{"url": someURL}, "", "", "[source.url.url]"},
		"other bytes in a file": {file, file, "sha256:ab", "sha256:cd", "[digest]"},
	} {
		var diags diag.Diagnostics
		plan, state := made(t, c.is), made(t, c.was)
		plan.Digest, state.Digest = tfvalue.OrNull(c.given), tfvalue.OrNull(c.proven)
		if got := fmt.Sprint(plan.otherDisk(context.Background(), state, &diags)); got != c.want {
			t.Errorf("%s: %s replaces it, want %s", name, got, c.want)
		}
		ok(t, diags)
	}
}

func TestDigest_UnknownUntilCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
	pinned := "sha256:" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		children any
		want     types.String
	}{
		"nothing":              {nil, types.StringNull()},
		"file":                 {map[string]any{"file": map[string]any{"path": path}}, types.StringUnknown()},
		"file of unknown name": {map[string]any{"file": map[string]any{"path": unknown{}}}, types.StringUnknown()},
		"seed":                 {map[string]any{"cloud_init": map[string]any{"user_data": "#cloud-config"}}, types.StringUnknown()},
		"image by digest":      {map[string]any{"container_image": map[string]any{"image": "example.org/image@" + pinned}}, types.StringValue(pinned)},
		"image by tag":         {map[string]any{"container_image": map[string]any{"image": "example.org/image:v1"}}, types.StringUnknown()},
		"url":                  {map[string]any{"url": someURL}, types.StringNull()},
	} {
		var diags diag.Diagnostics
		r := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", nil, nil)}}
		plan := made(t, c.children)
		plan.Format = types.StringUnknown()
		if digest := r.planNewDigest(context.Background(), plan, &diags); !digest.Equal(c.want) {
			t.Errorf("%s: planned as %s", name, digest)
		}
		ok(t, diags)
	}
}

// The stored digest holds for a file that is not there any more, also in another folder; another name is an error.
func TestDigest_FileElsewhere(t *testing.T) {
	of := func(path string) model { return made(t, map[string]any{"file": map[string]any{"path": path}}) }
	state := of("/home/one/image")
	state.Digest = types.StringValue("sha256:ab")
	for path, want := range map[string]string{"/home/one/image": "", "/home/two/image": "", "/home/one/image-2": `there is no file "/home/one/image-2"`} {
		var diags diag.Diagnostics
		r, plan := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", nil, nil)}}, of(path)
		plan.Digest = r.planOwnDigest(context.Background(), plan, state, &diags)
		switch {
		case want != "" && (len(diags) != 1 || !strings.Contains(diags[0].Detail(), want)):
			t.Errorf("%s: %v", path, diags)
		case want == "" && (diags.HasError() || len(diags) > 0 != (path != "/home/one/image") || len(plan.otherDisk(context.Background(), state, &diags)) > 0):
			t.Errorf("%s: it is another disk: %v", path, diags)
		}
	}
}

// A file that turns out to be missing in the apply is one error, and not another disk.
func TestDigest_MissingInApply(t *testing.T) {
	var diags diag.Diagnostics
	plan, state := made(t, map[string]any{"file": map[string]any{"path": "/home/two/other"}}), made(t, map[string]any{"file": someFile})
	plan.Digest, state.Digest = types.StringUnknown(), types.StringValue("sha256:ab")
	(&disk{}).settleDigest(context.Background(), &plan, state, &diags)
	if len(diags) != 1 || len(plan.otherDisk(context.Background(), state, &diags)) > 0 {
		t.Errorf("it is another disk: %v", diags)
	}
}

func TestDigest_PlanRefusesNonImage(t *testing.T) {
	var diags diag.Diagnostics
	plan := made(t, map[string]any{"file": map[string]any{"path": t.TempDir()}})
	(&disk{}).planNewDigest(context.Background(), plan, &diags)
	if len(diags) != 1 || !strings.Contains(diags[0].Detail(), "is a folder") {
		t.Errorf("not refused: %v", diags)
	}
}

// While the provider's configuration is unknown, there are no hosts to ask for the name of a replacement.
func TestDisk_RenamedWithUnknownProvider(t *testing.T) {
	var diags diag.Diagnostics
	plan, state := made(t, nil), made(t, nil)
	plan.Name = types.StringValue("other")
	if text := (&disk{Resource: providerdata.Resource{Provider: &providerdata.Data{}}}).ofTakenName(context.Background(), plan, state, &diags); text != "" || len(diags) > 0 {
		t.Errorf("it says %q, %v", text, diags)
	}
}
