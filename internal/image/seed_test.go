package image_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// What Terraform's cloudinit_config makes by default is no user data of a seed; real gzip bytes are, and so is text that happens to be base64.
func TestCheckUserData(t *testing.T) {
	const config, password = "#cloud-config\n", "password: hunter2\n"
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	lines := encoded(config + password)
	for name, c := range map[string]struct {
		data    string
		refused bool
	}{
		"text":                   {data: config + password},
		"empty":                  {},
		"gzip":                   {data: packed(config + password)},
		"base64 of other bytes":  {data: encoded("hello")},
		"a word":                 {data: "cafe"},
		"base64 of gzip":         {encoded(packed(config + password)), true},
		"base64 of text":         {encoded(config + password), true},
		"base64 of a script":     {encoded("#!/bin/sh\n"), true},
		"base64 of an include":   {encoded("#include\nhttps://example.org\n"), true},
		"base64 of a template":   {encoded("## template: jinja\n#cloud-config\n"), true},
		"base64 of MIME parts":   {encoded("Content-Type: multipart/mixed; boundary=\"MIMEBOUNDARY\"\nMIME-Version: 1.0\n"), true},
		"base64 of MIME headers": {encoded("MIME-Version: 1.0\nContent-Type: multipart/mixed\n"), true},
		"base64 in lines":        {" " + lines[:8] + "\r\n" + lines[8:] + "\n", true},
	} {
		err := image.CheckUserData([]byte(c.data))
		if (err != nil) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "gzip = false and base64_encode = false") || strings.Contains(err.Error(), c.data)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
