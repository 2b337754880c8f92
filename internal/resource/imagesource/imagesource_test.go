package imagesource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// digestOfFile is that of a sector of zeros.
const digestOfFile = "sha256:076a27c79e5ace2a3d47f9dd2e83e4ff6ea8872b3c2218f66c92b89b55f36560"

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
	folder.CheckFile(t.Context(), here, content.Spec{}, &checked)
	refused(t, "a folder", checked, here.AtName("file").AtName("path"), "is a folder")
	if digest := folder.PlanDigest(t.Context(), here, &planned); !digest.IsUnknown() {
		t.Errorf("planned as %s", digest)
	}
	refused(t, "the digest of a folder", planned, here.AtName("file").AtName("path"), "is a folder")
}

func fileAt(name string) Source { return Source{File: &File{Path: types.StringValue(name)}} }

func TestSource_MissingFile(t *testing.T) {
	missing := fileAt("images/none")
	want := filepath.Join(must(t, os.Getwd), "images", "none")
	for what, check := range map[string]func(*diag.Diagnostics){
		"checked": func(d *diag.Diagnostics) { missing.CheckFile(t.Context(), here, content.Spec{}, d) },
		"sought":  func(d *diag.Diagnostics) { missing.CheckPath(here, d) },
		"planned": func(d *diag.Diagnostics) { missing.PlanDigest(t.Context(), here, d) },
	} {
		var diags diag.Diagnostics
		check(&diags)
		refused(t, what, diags, here.AtName("file").AtName("path"), "(it was looked for at \""+want+"\")")
		if strings.Contains(diags[0].Detail(), "stat ") {
			t.Errorf("%s: %s", what, diags[0].Detail())
		}
	}
}

func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	got, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A file that is not there any more, in whatever folder it was, is not known to be another one.
func TestSource_IsElsewhere(t *testing.T) {
	there := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(there, make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
	was := fileAt("/home/one/image")
	for name, c := range map[string]struct {
		is   Source
		want bool
	}{
		"the same path":       {was, true},
		"another folder":      {fileAt("/home/two/image"), true},
		"another name":        {fileAt("/home/one/image-2"), false},
		"it is there":         {fileAt(there), false},
		"not known":           {Source{File: &File{Path: unknown}}, false},
		"another kind":        {url(types.StringValue("https://example.org/image"), types.StringNull()), false},
		"nothing to be known": {Source{}, false},
	} {
		if got := c.is.IsElsewhere(was); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What an apply would refuse is refused while what it replaces is still there.
func TestSource_Judge(t *testing.T) {
	qcow2 := slices.Concat([]byte("QFI\xfb\x00\x00\x00\x03"), make([]byte, 64<<10))
	for what, c := range map[string]struct {
		content []byte
		spec    content.Spec
		want    string
	}{
		"raw":                  {make([]byte, 4096), content.Spec{Capacity: 4096}, ""},
		"a pointer of Git LFS": {[]byte("version https://git-lfs.github.com/spec/v1\n"), content.Spec{}, "git lfs pull"},
		"a web page":           {[]byte("<!DOCTYPE html><title>Log in</title>"), content.Spec{}, "it is a web page"},
		"VMDK":                 {slices.Concat([]byte("KDMV"), make([]byte, 4096)), content.Spec{}, "it is in the format VMDK"},
		"VHDX":                 {slices.Concat([]byte("vhdxfile"), make([]byte, 4096)), content.Spec{}, "it is in the format VHDX"},
		"too short":            {[]byte("not found"), content.Spec{}, "it has 9 bytes"},
		"a broken qcow2":       {qcow2, content.Spec{}, "the image is refused"},
		"another format":       {make([]byte, 4096), content.Spec{Format: "qcow2"}, "the image is raw, not qcow2"},
	} {
		name := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(name, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(c.content))
		}))
		t.Cleanup(web.Close)
		for kind, s := range map[string]Source{"file": fileAt(name), "url": url(types.StringValue(web.URL+"/image"), types.StringNull())} {
			err := s.Judge(t.Context(), &image.Tags{}, nil, c.spec)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s by %s: %v", what, kind, err)
			}
		}
	}
}

func TestSource_JudgeWithoutFile(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	err := url(types.StringValue(web.URL+"/image"), types.StringNull()).Judge(t.Context(), &image.Tags{}, nil, content.Spec{})
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the server is believed: %v", err)
	}
	if err := fileAt("none").Judge(t.Context(), &image.Tags{}, nil, content.Spec{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file is judged: %v", err)
	}
}

// A raw file that is too long is refused before its first byte is uploaded. A volume that is there has no size that could be set.
func TestSource_PrepareTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(name, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]content.Spec{
		"the image has 8Ki, and the volume 4Ki. Use a larger one":               {Capacity: 4096, IsFixed: true},
		"the image has 8Ki, and the disk is to have 4Ki. Set a size that is at": {Capacity: 4096},
	} {
		_, err := fileAt(name).Prepare(t.Context(), &image.Tags{}, nil, &spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is to be uploaded: %v", err)
		}
		var diags diag.Diagnostics
		fileAt(name).CheckFile(t.Context(), here, spec, &diags)
		refused(t, "at plan", diags, here.AtName("file").AtName("path"), want)
	}
}

func TestSource_PlanDigest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(name, make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		given Source
		want  types.String
	}{
		"no source":            {Source{}, types.StringNull()},
		"image by digest":      {container(types.StringValue("example.org/image@"+one), types.StringNull()), types.StringValue(one)},
		"image by tag":         {container(types.StringValue("example.org/image:v1"), types.StringNull()), unknown},
		"url":                  {url(types.StringValue("https://example.org/image"), types.StringNull()), types.StringNull()},
		"checksum in capitals": {url(types.StringValue("https://example.org/image"), types.StringValue("SHA256:AB")), types.StringValue("sha256:ab")},
		"file":                 {Source{File: &File{Path: types.StringValue(name)}}, types.StringValue(digestOfFile)},
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
	if err := os.WriteFile(name, make([]byte, 512), 0o600); err != nil {
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
