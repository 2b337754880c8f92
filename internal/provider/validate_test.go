package provider

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// refusals are the errors of a configuration, each with its attribute.
func refusals(t *testing.T, resource string, config values) string {
	t.Helper()
	server := NewServer(Release{Version: "test"})
	typ := schemas(server)(t.Context()).ResourceSchemas[resource].ValueType()
	answer, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: resource, Config: dynamic(t, typ, config)})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, d := range answer.Diagnostics {
		if isError(d) {
			all.WriteString(d.Attribute.String() + ": " + d.Detail + "\n")
		}
	}
	return all.String()
}

// A number without a suffix counts bytes, so that the unit of memory = 512 was forgotten. Clusters are that small.
func TestProvider_ForgottenUnit(t *testing.T) {
	machine, disk := "virtclaim_virtual_machine", "virtclaim_disk"
	for _, c := range []struct{ resource, attribute, value, want string }{
		{machine, "memory", "512", `memory = "512" is 512 bytes. Write its unit: 512Mi was probably meant`},
		{machine, "memory", "2", `memory = "2" is 2 bytes. Write its unit: 2Gi was probably meant`},
		{machine, "max_memory", "4096", `max_memory = "4096" is 4096 bytes. Write its unit: 4096Mi was probably meant`},
		{disk, "size", "20", `size = "20" is 20 bytes. Write its unit: 20Gi was probably meant`},
		{machine, "memory", "512Mi", ""},
		{machine, "memory", "536870912", ""},
		{disk, "size", "20Gi", ""},
		{disk, "size", "64Ki", ""},
		{disk, "size", "1048576", ""},
		{disk, "cluster_size", "65536", ""},
	} {
		got := refusals(t, c.resource, values{c.attribute: c.value})
		if c.want == "" && strings.Contains(got, " bytes. ") || !strings.Contains(got, c.want) {
			t.Errorf("%s = %q: got %q, want %q", c.attribute, c.value, got, c.want)
		}
	}
}

// user_data = data.cloudinit_config.web.rendered, with its defaults, is refused at plan: a guest would ignore it. base64gzip() is the same.
func TestProvider_UserDataInBase64(t *testing.T) {
	const packed, text = "H4sIAAAAAAAA/w==", "#cloud-config\n"
	for attribute, value := range map[string]string{"user_data": packed, "user_data_wo": base64.StdEncoding.EncodeToString([]byte(text))} {
		of := func(value any) string {
			return refusals(t, "virtclaim_disk", values{"source": values{"cloud_init": values{attribute: value}}})
		}
		at := `AttributeName("source").AttributeName("cloud_init").AttributeName("` + attribute + `"): `
		if got := of(value); !strings.Contains(got, at+"user data in base64") || strings.Contains(got, value) {
			t.Errorf("%s: got %s", attribute, got)
		}
		for _, other := range []any{text, tftypes.UnknownValue, nil} {
			if got := of(other); strings.Contains(got, "base64") {
				t.Errorf("%s = %v: %s", attribute, other, got)
			}
		}
	}
}

// What the design documents and Kubernetes call an access mode or a copy mode is answered by what to write here.
func TestProvider_WordsOfOtherDocuments(t *testing.T) {
	binding, disk := "virtclaim_volume_binding", "virtclaim_disk"
	for _, c := range []struct{ resource, attribute, value, want string }{
		{binding, "access_mode", "read-only", "Write read-shared."},
		{binding, "access_mode", "Write-exclusive", "Write write-exclusive."},
		{binding, "access_mode", "ReadOnlyMany", "Write read-shared."},
		{binding, "access_mode", "ReadWriteOnce", "Write write-exclusive."},
		{binding, "access_mode", "ReadWriteMany", "Write write-shared."},
		{disk, "copy_mode", "none", "Leave the disk out"},
		{disk, "copy_mode", "Clone", "Write clone."},
	} {
		if got := refusals(t, c.resource, values{c.attribute: c.value}); !strings.Contains(got, `AttributeName("`+c.attribute+`"): "`+c.value+`" must be one of: `) || !strings.Contains(got, c.want) {
			t.Errorf("%s = %q: got %q, want %q", c.attribute, c.value, got, c.want)
		}
	}
}
