package disk

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// texts is a map of texts; the text ? is unknown.
func texts(of map[string]string) types.Map {
	all := map[string]attr.Value{}
	for name, text := range of {
		if all[name] = types.StringValue(text); text == "?" {
			all[name] = types.StringUnknown()
		}
	}
	return types.MapValueMust(types.StringType, all)
}

// secretFiles are files by namespace/name/key.
func secretFiles(t *testing.T, of map[string]string) attr.Value {
	t.Helper()
	all, typed := map[string]attr.Value{}, sourceAttribute().GetType().(attr.TypeWithAttributeTypes).AttributeTypes()[fromFiles].(types.ObjectType).AttrTypes["secrets"].(types.MapType).ElemType
	for path, at := range of {
		f := strings.Split(at, "/")
		all[path] = value(t, typed, map[string]any{"namespace": f[0], "name": f[1], "key": f[2]})
	}
	return types.MapValueMust(typed, all)
}

func TestFiles_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		files any
		want  string
	}{
		"a ConfigDrive":     {map[string]any{"label": "config-2", "content": texts(map[string]string{"openstack/latest/user_data": "#cloud-config\n"})}, ""},
		"all three kinds":   {map[string]any{"label": "x", "content": texts(map[string]string{"a": ""}), "content_wo": texts(map[string]string{"b": ""}), "secrets": secretFiles(t, map[string]string{"c": "n/s/k"})}, ""},
		"no files":          {map[string]any{"label": "x", "content": texts(nil)}, "no files"},
		"unknown":           {unknown{}, ""},
		"unknown files":     {map[string]any{"label": "x", "content": types.MapUnknown(types.StringType)}, ""},
		"an unknown text":   {map[string]any{"label": "x", "content": texts(map[string]string{"a": "?"})}, ""},
		"one at a bad path": {map[string]any{"label": unknown{}, "content": texts(map[string]string{"../a": "?"})}, "can't be a path"},
		"an unknown secret": {map[string]any{"label": "x", "secrets": value(t, types.MapType{ElemType: secretFiles(t, nil).(types.Map).ElementType(t.Context())}, unknown{})}, ""},
		"the same path":     {map[string]any{"label": "x", "content": texts(map[string]string{"a": "hunter2"}), "content_wo": texts(map[string]string{"a": "hunter2"})}, "two files have the path \"a\""},
		"one of a secret":   {map[string]any{"label": "x", "content": texts(map[string]string{"a/B": "hunter2"}), "secrets": secretFiles(t, map[string]string{"a/b": "n/s/k"})}, "two files have the path"},
		"a folder":          {map[string]any{"label": "x", "content": texts(map[string]string{"a": "?"}), "content_wo": texts(map[string]string{"a/b": "hunter2"})}, "a file and a folder"},
		"large":             {map[string]any{"label": "x", "content": texts(map[string]string{"a": strings.Repeat("hunter2 ", 2<<20)})}, "may have 16777216"},
		"large together":    {map[string]any{"label": "x", "content": texts(map[string]string{"a": strings.Repeat("x", 8<<20)}), "content_wo": texts(map[string]string{"b": strings.Repeat("x", 8<<20)})}, "may have"},
	} {
		var diags diag.Diagnostics
		m := made(t, map[string]any{fromFiles: c.files})
		m.checkSource(t.Context(), &diags)
		if c.want == "" {
			ok(t, diags)
			continue
		}
		if len(diags) != 1 || !strings.Contains(diags[0].Detail(), c.want) || strings.Contains(diags[0].Detail(), "hunter2") || len(diags[0].Detail()) > 300 {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func TestFiles_Label(t *testing.T) {
	for label, good := range map[string]bool{"config-2": true, "OEMDRV": true, "a.b_c": true, strings.Repeat("l", 16): true, "": false, "a b": false, "ä": false, "a/b": false, strings.Repeat("l", 17): false, "a\n": false} {
		if isoLabel.MatchString(label) != good {
			t.Errorf("%q", label)
		}
	}
}

// What a plan knows tells any change, without a file's write-only text.
func TestFiles_Digest(t *testing.T) {
	digest := func(children map[string]any) string {
		var diags diag.Diagnostics
		s := made(t, map[string]any{fromFiles: children}).source(t.Context(), &diags)
		ok(t, diags)
		got, err := digestOf(t.Context(), s.composed(), func() (secretVersions, error) { return fixedVersion("1"), nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := map[string]any{"label": "x", "content": texts(map[string]string{"a": "1", "b": "2"}), "secrets": secretFiles(t, map[string]string{"c": "n/s/k"}), "content_wo_version": types.Int64Value(1)}
	with := func(name string, value any) map[string]any {
		other := maps.Clone(base)
		other[name] = value
		return other
	}
	if digest(base) != digest(with("content_wo", texts(map[string]string{"d": "4"}))) {
		t.Error("a plan, which has no write-only text, plans another digest than the apply's")
	}
	seen := []string{digest(base)}
	for name, other := range map[string]map[string]any{
		"label": with("label", "y"), "text": with("content", texts(map[string]string{"a": "1", "b": "3"})), "path": with("content", texts(map[string]string{"a": "1", "B": "2"})),
		"exchanged": with("content", texts(map[string]string{"a": "2", "b": "1"})), "fewer": with("content", texts(map[string]string{"a": "1"})),
		"key": with("secrets", secretFiles(t, map[string]string{"c": "n/s/l"})), "secret's path": with("secrets", secretFiles(t, map[string]string{"d": "n/s/k"})),
		"secret": with("secrets", secretFiles(t, map[string]string{"c": "n/t/k"})), "version": with("content_wo_version", types.Int64Value(2)),
	} {
		if got := digest(other); slices.Contains(seen, got) {
			t.Errorf("another %s is the same digest", name)
		} else {
			seen = append(seen, got)
		}
	}
}

// The digests of seeds that earlier versions made stay as they were, or all would be replaced.
func TestSeed_DigestStays(t *testing.T) {
	got, err := digestOf(t.Context(), cloudInitModel{
		UserData:             types.StringValue("#cloud-config\n"),
		NetworkDataSecretRef: &tfvalue.SecretRef{Namespace: types.StringValue("disks"), Name: types.StringValue("seed")},
		MetaDataWOVersion:    types.Int64Value(3),
	}, func() (secretVersions, error) { return fixedVersion("7"), nil })
	if err != nil || got != "sha256:fc0e1516a9e7d14f0e04415a7f55ecb06d58094dbd6c4b0b2ed287304c41bfda" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestIgnition_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		ignition any
		want     string
	}{
		"right":      {map[string]any{"config": `{"ignition": {"version": "3.4.0"}}`}, ""},
		"unknown":    {map[string]any{"config": unknown{}}, ""},
		"a secret":   {map[string]any{"secret_ref": map[string]any{"namespace": "n", "name": "s"}}, ""},
		"Butane":     {map[string]any{"config": "variant: fcos # hunter2\n"}, "transpile"},
		"write-only": {map[string]any{"config_wo": "variant: fcos # hunter2\n"}, "transpile"},
		"empty":      {map[string]any{"config": ""}, "no JSON"},
	} {
		var diags diag.Diagnostics
		made(t, map[string]any{fromIgnition: c.ignition}).checkSource(t.Context(), &diags)
		if c.want == "" {
			ok(t, diags)
		} else if len(diags) != 1 || !strings.Contains(diags[0].Detail(), c.want) || strings.Contains(diags[0].Detail(), "hunter2") {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// Only the apply reads a secret: what is wrong with it is an error without its content. withUserData ends it with its version.
func TestComposed_OfSecrets(t *testing.T) {
	at := tfvalue.SecretRef{Namespace: types.StringValue("disks"), Name: types.StringValue("seed")}
	files := func(key string) sourceModel {
		return sourceModel{Files: &filesModel{Label: types.StringValue("x"), Secrets: map[string]keyRef{"a": {at, types.StringValue(key)}}}}
	}
	for name, c := range map[string]struct {
		source  sourceModel
		content string
		want    string
	}{
		"Ignition":         {sourceModel{Ignition: &ignitionModel{SecretRef: &at}}, `{"ignition": {"version": "3.4.0"}} ` + "\n", "no JSON"}, // with the version behind it
		"Butane":           {sourceModel{Ignition: &ignitionModel{SecretRef: &at}}, "variant: hunter", "transpile"},
		"a file":           {files("userdata"), "hunter", ""},
		"a key it lacks":   {files("none"), "hunter", "has none of the keys none; it has userdata"},
		"a file too large": {files("userdata"), strings.Repeat("hunter2 ", 2<<20), "may have 16777216"},
	} {
		r := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", nil, withUserData(c.content))}}
		var spec content.Spec
		_, err := r.prepareComposed(context.Background(), made(t, nil), c.source, &spec)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
