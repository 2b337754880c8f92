package image_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func TestCheckIgnition(t *testing.T) {
	const config = `{"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "hunter2"}]}}`
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, c := range map[string]struct{ config, want string }{
		"a configuration":      {config, ""},
		"one in lines":         {"\n " + strings.ReplaceAll(config, ",", ",\r\n\t") + "\n", ""},
		"an old one":           {`{"ignition": {"version": "2.3.0"}}`, ""},
		"empty":                {"", "no JSON, at byte 0"},
		"blanks":               {"  \n", "no JSON"},
		"Butane":               {"variant: fcos\nversion: 1.5.0\npasswd: hunter2\n", "transpile it"},
		"Butane further on":    {"# hunter2\nversion: 1.0.0\nvariant: flatcar\n", "transpile it"},
		"cloud-config":         {"#cloud-config\npassword: hunter2\n", "no JSON, at byte 1"},
		"torn":                 {config[:40], "no JSON, at byte 40"},
		"more behind it":       {config + "hunter2", "no JSON"},
		"without a version":    {`{"ignition": {}, "passwd": "hunter2"}`, "no Ignition configuration"},
		"a version in letters": {`{"ignition": {"version": "hunter2"}}`, "no Ignition configuration"},
		"a number":             {`{"ignition": {"version": 3}}`, "no Ignition configuration"},
		"a list":               {`["hunter2"]`, "no Ignition configuration"},
		"null":                 {`null`, "no Ignition configuration"},
		"a text":               {`"hunter2"`, "no Ignition configuration"},
		"gzip":                 {"\x1f\x8b\x08hunter2", "gzip"},
		"base64":               {encoded(config), "base64"},
		"base64 in lines":      {encoded(config)[:20] + "\n" + encoded(config)[20:] + "\n", "base64"},
		"base64 of gzip":       {encoded("\x1f\x8b\x08hunter2"), "base64"},
		"base64 of blanks":     {encoded("   "), "no JSON"},
		"large":                {config + strings.Repeat(" ", 1<<20), "may have 1048576"},
	} {
		err := image.CheckIgnition([]byte(c.config))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 300) {
			t.Errorf("%s: the error has some of it, or is long: %v", name, err)
		}
	}
}

// It has whole sectors, and is the same JSON.
func TestIgnition(t *testing.T) {
	for _, length := range []int{40, 4095, 4096, 4097, 1 << 20} {
		config := []byte(`{"ignition": {"version": "3.4.0"}, "x": "` + strings.Repeat("x", max(0, length-42)) + `"}`)
		got, err := image.Ignition(config)
		if err != nil && len(config) <= 1<<20 {
			t.Fatal(err)
		}
		if len(got)%4096 != 0 || len(got)-len(config) >= 4096 || !bytes.HasPrefix(got, config) || !json.Valid(got) {
			t.Errorf("%d bytes have become %d", len(config), len(got))
		}
	}
}
