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

// What cloud-init documents, and what works in it, makes no warning: an unknown head does.
func TestSuspiciousUserData(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"empty":                  {},
		"a configuration":        {data: "#cloud-config\npassword: hunter2\n"},
		"one with CR LF":         {data: "#cloud-config\r\npassword: hunter2\r\n"},
		"one in capitals":        {data: "#Cloud-Config\n"},
		"an archive":             {data: "#cloud-config-archive\n- x\n"},
		"a script":               {data: "#!/bin/sh\n"},
		"an include":             {data: "#include\nhttps://example.org\n"},
		"one that is kept":       {data: "#include-once\nhttps://example.org\n"},
		"a boothook":             {data: "#cloud-boothook\n#!/bin/sh\n"},
		"a job":                  {data: "#upstart-job\n"},
		"a handler":              {data: "#part-handler\n"},
		"a template":             {data: "## template: jinja\n#cloud-config\n"},
		"MIME parts":             {data: "Content-Type: multipart/mixed; boundary=\"x\"\nMIME-Version: 1.0\n"},
		"MIME in other letters":  {data: "mime-version: 1.0\ncontent-type: text/cloud-config\n"},
		"MIME behind others":     {data: "From nobody\nMIME-Version: 1.0\n"},
		"gzip":                   {data: "\x1f\x8b\x08"},
		"PowerShell for Windows": {data: "#ps1_sysnative\n"},
		"an indented head":       {"  #cloud-config\n  password: hunter2\n", "blanks before #cloud-config"},
		"a line before it":       {"\n#!/bin/sh\n", "blanks before #!"},
		"a head with a space":    {"# cloud-config\npassword: hunter2\n", "begin with none of"},
		"a byte order mark":      {"\ufeff#cloud-config\n", "begin with none of"},
		"no head":                {"password: hunter2\n", "begin with none of"},
		"one that is further on": {"password: hunter2\n#cloud-config\n", "begin with none of"},
	} {
		got := image.SuspiciousUserData([]byte(c.data))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSuspiciousNetworkData(t *testing.T) {
	for data, suspicious := range map[string]bool{
		"": false, "version: 2\nethernets:\n  all: {dhcp4: true} #\ttab\n": false, "version: 2\nethernets:\n\tall: {dhcp4: true}\n": true, "a:\n  \tb: c": true, "a: b\n\t\n": false,
	} {
		if got := image.SuspiciousNetworkData([]byte(data)); (got != "") != suspicious {
			t.Errorf("%q: %q", data, got)
		}
	}
}
