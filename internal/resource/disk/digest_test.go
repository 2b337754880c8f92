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

	"github.com/virtclaim/terraform-provider-virtclaim/internal/backend"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func TestDigest_OfURL(t *testing.T) {
	const here, there = "https://example.org/here", "https://example.org/there"
	one, two := "sha256:"+strings.Repeat("ab", 32), "sha256:"+strings.Repeat("cd", 32)
	url := func(url string, checksum any) any {
		return map[string]any{"url": map[string]any{"url": url, "checksum": checksum}}
	}
	for name, c := range map[string]struct {
		was    any
		proven string
		is     any
		want   string
	}{
		"nothing changed":                              {url(here, nil), "", url(here, nil), ""},
		"another URL":                                  {url(here, nil), "", url(there, nil), "url"},
		"another URL for the same checksum":            {url(here, one), one, url(there, one), ""},
		"another checksum":                             {url(here, one), one, url(here, two), "checksum"},
		"another checksum and URL":                     {url(here, one), one, url(there, two), "checksum"},
		"an unknown checksum":                          {url(here, one), one, url(there, unknown{}), ""},
		"the checksum in capitals":                     {url(here, one), one, url(there, strings.ToUpper(one)), ""},
		"once in capitals":                             {url(here, strings.ToUpper(one)), strings.ToUpper(one), url(here, one), ""},
		"a checksum added":                             {url(here, nil), "", url(here, one), ""},
		"a checksum added with another URL":            {url(here, nil), "", url(there, one), "url"},
		"another URL for a checksum that was added":    {url(here, one), "", url(there, one), "url"},
		"another checksum than the one that was added": {url(here, one), "", url(here, two), "checksum"},
		"a checksum taken away":                        {url(here, one), one, url(here, nil), ""},
		"a checksum taken away with another URL":       {url(here, one), one, url(there, nil), "url"},
		"the proven checksum given again":              {url(here, nil), one, url(there, one), ""},
		"another than the proven checksum given":       {url(here, nil), one, url(here, two), "checksum"},
	} {
		var diags diag.Diagnostics
		plan, state := made(t, c.is), made(t, c.was)
		state.Digest = tfvalue.OrNull(c.proven)
		got := fmt.Sprint(plan.otherDisk(context.Background(), state, &diags))
		if want := "[]"; c.want == "" && got != want || c.want != "" && got != "[source.url."+c.want+"]" {
			t.Errorf("%s: %s replaces it", name, got)
		}
		ok(t, diags)
	}
}

func TestDigest_LowerCaseChecksum(t *testing.T) {
	var diags diag.Diagnostics
	plan := made(t, map[string]any{"url": map[string]any{"url": "https://example.org/image", "checksum": "SHA256:AB"}})
	if digest := (&disk{}).planDigest(context.Background(), plan, &diags); digest != types.StringValue("sha256:ab") {
		t.Errorf("planned as %s", digest)
	}
	ok(t, diags)
}

func TestDigest_UnknownUntilCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, []byte("an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	pinned := "sha256:" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		children any
		want     types.String
	}{
		"nothing":                {nil, types.StringNull()},
		"file":                   {map[string]any{"file": map[string]any{"path": path}}, types.StringUnknown()},
		"file that is not there": {map[string]any{"file": map[string]any{"path": path + "-later"}}, types.StringUnknown()},
		"file of unknown name":   {map[string]any{"file": map[string]any{"path": unknown{}}}, types.StringUnknown()},
		"seed":                   {map[string]any{"cloud_init": map[string]any{"user_data": "#cloud-config"}}, types.StringUnknown()},
		"image by digest":        {map[string]any{"container_image": map[string]any{"image": "example.org/image@" + pinned}}, types.StringValue(pinned)},
		"image by tag":           {map[string]any{"container_image": map[string]any{"image": "example.org/image:v1"}}, types.StringUnknown()},
		"url":                    {map[string]any{"url": someURL}, types.StringNull()},
	} {
		var diags diag.Diagnostics
		r := &disk{backend: backend.New("", nil, nil)}
		if digest := r.planNewDigest(context.Background(), made(t, c.children), &diags); !digest.Equal(c.want) {
			t.Errorf("%s: planned as %s", name, digest)
		}
		ok(t, diags)
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
