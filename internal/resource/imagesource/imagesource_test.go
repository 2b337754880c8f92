package imagesource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// digestOfFile is that of the text "an image".
const digestOfFile = "sha256:a5df3fde7b200c3fa2791144c7e05c5c2bced4c6ad863d3a4cf76c972c1712f9"

var (
	here    = path.Root("source")
	unknown = types.StringUnknown()
	one     = "sha256:" + strings.Repeat("ab", 32)
	two     = "sha256:" + strings.Repeat("cd", 32)
)

// ok fails the test when there is a diagnostic.
func ok(t *testing.T, name string, diags diag.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		t.Errorf("%s: %s: %s", name, d.Summary(), d.Detail())
	}
}

// refused fails the test unless there is one error, of that attribute and with that text.
func refused(t *testing.T, name string, diags diag.Diagnostics, at path.Path, want string) {
	t.Helper()
	if len(diags) != 1 || !strings.Contains(diags[0].Summary()+diags[0].Detail(), want) {
		t.Errorf("%s is not refused: %v", name, diags)
		return
	}
	if d, isOf := diags[0].(diag.DiagnosticWithPath); !isOf || !d.Path().Equal(at) {
		t.Errorf("%s: not an error of %s: %v", name, at, diags[0])
	}
}

func container(reference, policy types.String) Source {
	return Source{Container: &Container{Reference: Reference{Image: reference, PullPolicy: policy}}}
}

func url(url, checksum types.String) Source { return Source{URL: &URL{URL: url, Checksum: checksum}} }

// Unknown values may still turn out valid.
func TestSource_PartlyKnownImage(t *testing.T) {
	tagged, never, server := types.StringValue("example.org/image:v1"), types.StringValue(pullNever), types.StringValue("https://example.org/image")
	for name, s := range map[string]Source{
		"no source":         {},
		"unknown image":     container(unknown, never),
		"unknown policy":    container(tagged, unknown),
		"unknown user":      {Container: &Container{Reference: Reference{Image: tagged, Username: unknown}}},
		"all of it unknown": {Container: &Container{Reference: Reference{Image: unknown, PullPolicy: unknown, Username: unknown}, Path: unknown}},
		"unknown URL":       url(unknown, types.StringValue(one)),
		"unknown checksum":  url(server, unknown),
	} {
		var diags diag.Diagnostics
		s.Check(here, &diags)
		ok(t, name, diags)
	}
}

func TestSource_Refused(t *testing.T) {
	image, web := here.AtName("container_image"), here.AtName("url")
	for name, c := range map[string]struct {
		given Source
		at    path.Path
		want  string
	}{
		"no reference":         {container(types.StringValue("not an image"), types.StringNull()), image.AtName("image"), "Not a container image"},
		"a tag without pulls":  {container(types.StringValue("example.org/image:v1"), types.StringValue(pullNever)), image.AtName("pull_policy"), "A tag needs the registry"},
		"no web server":        {url(types.StringValue("ftp://example.org/image"), types.StringValue(one)), web.AtName("url"), "Not the URL of an image"},
		"a checksum too short": {url(types.StringValue("https://example.org/image"), types.StringValue("sha256:ab")), web.AtName("checksum"), "Not a checksum"},
	} {
		var diags diag.Diagnostics
		c.given.Check(here, &diags)
		refused(t, name, diags, c.at, c.want)
	}
}

func TestSource_RefusesNonImage(t *testing.T) {
	var checked, planned diag.Diagnostics
	folder := Source{File: &File{Path: types.StringValue(t.TempDir())}}
	folder.CheckFile(t.Context(), here, &checked)
	refused(t, "a folder", checked, here.AtName("file").AtName("path"), "is a folder")
	if digest := folder.PlanDigest(t.Context(), here, &planned); !digest.IsUnknown() {
		t.Errorf("planned as %s", digest)
	}
	refused(t, "the digest of a folder", planned, here.AtName("file").AtName("path"), "is a folder")
}

func TestSource_PlanDigest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(name, []byte("an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		given Source
		want  types.String
	}{
		"no source":              {Source{}, types.StringNull()},
		"image by digest":        {container(types.StringValue("example.org/image@"+one), types.StringNull()), types.StringValue(one)},
		"image by tag":           {container(types.StringValue("example.org/image:v1"), types.StringNull()), unknown},
		"url":                    {url(types.StringValue("https://example.org/image"), types.StringNull()), types.StringNull()},
		"checksum in capitals":   {url(types.StringValue("https://example.org/image"), types.StringValue("SHA256:AB")), types.StringValue("sha256:ab")},
		"file":                   {Source{File: &File{Path: types.StringValue(name)}}, types.StringValue(digestOfFile)},
		"file that is not there": {Source{File: &File{Path: types.StringValue(name + "-later")}}, unknown},
	} {
		var diags diag.Diagnostics
		if digest := c.given.PlanDigest(t.Context(), here, &diags); !digest.Equal(c.want) {
			t.Errorf("%s: planned as %s", what, digest)
		}
		ok(t, what, diags)
	}
}

func TestSource_Prepare(t *testing.T) {
	pinned := types.StringValue("example.org/image@" + one)
	name := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(name, []byte("an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	architecture := func(context.Context) (string, error) { return "", errors.New("no host") }
	for what, c := range map[string]struct {
		given               Source
		digest, base, bytes string
		want                string
	}{
		"no source":           {Source{}, "", "", "", ""},
		"image on the host":   {container(pinned, types.StringValue(pullNever)), one, one + " /", "", "the registry is not asked"},
		"image for a host":    {container(pinned, types.StringNull()), one, one + " /", "", "no host"},
		"url":                 {url(types.StringValue("https://example.org/image"), types.StringNull()), "", "", "https://example.org/image", ""},
		"url with a checksum": {url(types.StringValue("https://example.org/image"), types.StringValue(strings.ToUpper(one))), one, "", one, ""},
		"file":                {Source{File: &File{Path: types.StringValue(name)}}, digestOfFile, "", digestOfFile, ""},
	} {
		var spec content.Spec
		digest, err := c.given.Prepare(t.Context(), &image.Tags{}, architecture, &spec)
		if err != nil || digest != c.digest || idOf(spec.Base) != c.base || idOf(spec.Content) != c.bytes {
			t.Errorf("%s: digest %q, base %q, content %q, %v", what, digest, idOf(spec.Base), idOf(spec.Content), err)
		}
		if c.want == "" {
			continue
		}
		if _, err := spec.Base.Open(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: opened with %v", what, err)
		}
	}
}

func idOf(i *content.Image) string {
	if i == nil {
		return ""
	}
	return i.ID
}

func TestSource_OtherContentOfURL(t *testing.T) {
	first, second := types.StringValue("https://example.org/here"), types.StringValue("https://example.org/there")
	sum := tfvalue.OrNull
	for name, c := range map[string]struct {
		was    Source
		proven string
		is     Source
		want   string
	}{
		"nothing changed":                              {url(first, sum("")), "", url(first, sum("")), ""},
		"another URL":                                  {url(first, sum("")), "", url(second, sum("")), "url"},
		"another URL for the same checksum":            {url(first, sum(one)), one, url(second, sum(one)), ""},
		"another checksum":                             {url(first, sum(one)), one, url(first, sum(two)), "checksum"},
		"another checksum and URL":                     {url(first, sum(one)), one, url(second, sum(two)), "checksum"},
		"an unknown checksum":                          {url(first, sum(one)), one, url(second, unknown), ""},
		"the checksum in capitals":                     {url(first, sum(one)), one, url(first, sum(strings.ToUpper(one))), ""},
		"once in capitals":                             {url(first, sum(strings.ToUpper(one))), strings.ToUpper(one), url(first, sum(one)), ""},
		"a checksum added":                             {url(first, sum("")), "", url(first, sum(one)), ""},
		"a checksum added with another URL":            {url(first, sum("")), "", url(second, sum(one)), "url"},
		"another URL for a checksum that was added":    {url(first, sum(one)), "", url(second, sum(one)), "url"},
		"another checksum than the one that was added": {url(first, sum(one)), "", url(first, sum(two)), "checksum"},
		"a checksum taken away":                        {url(first, sum(one)), one, url(first, sum("")), ""},
		"a checksum taken away with another URL":       {url(first, sum(one)), one, url(second, sum("")), "url"},
		"the proven checksum given again":              {url(first, sum("")), one, url(second, sum(one)), ""},
		"another than the proven checksum given":       {url(first, sum("")), one, url(first, sum(two)), "checksum"},
	} {
		got := fmt.Sprint(c.is.OtherContent(c.was, sum(c.proven), here))
		if want := "[]"; c.want == "" && got != want || c.want != "" && got != "[source.url."+c.want+"]" {
			t.Errorf("%s: %s replaces it", name, got)
		}
	}
}
