package tfvalue_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func TestQuantity_KiBRoundedUp(t *testing.T) {
	for text, want := range map[string]uint{
		"1": 1, "1024": 1, "1025": 2, "512Mi": 512 << 10, "2Gi": 2 << 20, "1G": 976563, "0.5Gi": 512 << 10, "1e6": 977,
	} {
		if got, err := tfvalue.NewQuantity(text).KiB(); err != nil || got != want {
			t.Errorf("%s is %d KiB, %v; want %d", text, got, err, want)
		}
	}
}

func TestQuantity_Refused(t *testing.T) {
	for text, want := range map[string]string{
		"": "not a Kubernetes quantity", "2GB": "not a Kubernetes quantity", "2 Gi": "not a Kubernetes quantity",
		"0": "positive number of bytes", "-1Gi": "positive number of bytes", "100m": "whole", "8Ei": "more than any host can have",
	} {
		var resp xattr.ValidateAttributeResponse
		tfvalue.NewQuantity(text).ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("memory")}, &resp)
		if !resp.Diagnostics.HasError() || !strings.Contains(resp.Diagnostics[0].Detail(), want) {
			t.Errorf("%q: %v, want %q", text, resp.Diagnostics, want)
		}
	}
}

func TestQuantity_KeepsSpelling(t *testing.T) {
	tests := []struct{ mine, libvirts, want string }{
		{"2048Mi", "2Gi", "2048Mi"},
		{"2147483648", "2Gi", "2147483648"},
		{"2Gi", "3Gi", "3Gi"},
		{"nonsense", "2Gi", "2Gi"},
	}
	for _, tt := range tests {
		if got := tfvalue.NewQuantity(tt.mine).OrSame(tfvalue.NewQuantity(tt.libvirts)); got.ValueString() != tt.want {
			t.Errorf("%s, where libvirt says %s, became %s", tt.mine, tt.libvirts, got.ValueString())
		}
	}
	for kib, want := range map[uint]string{1: "1Ki", 1536: "1536Ki", 1 << 20: "1Gi", 3 << 10: "3Mi"} {
		if got := tfvalue.QuantityOfKiB(kib).ValueString(); got != want {
			t.Errorf("%d KiB is written %s, want %s", kib, got, want)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	f.Add("2Gi")
	f.Add("-0.5e3k")
	f.Add("1e9999999") // ParseQuantity would not return
	f.Fuzz(func(t *testing.T, text string) {
		kib, err := tfvalue.NewQuantity(text).KiB()
		if err != nil {
			return
		}
		back, err := tfvalue.QuantityOfKiB(kib).KiB()
		if kib == 0 || err != nil || back != kib {
			t.Errorf("%q is %d KiB, and that is %d, %v", text, kib, back, err)
		}
	})
}

func TestImportID(t *testing.T) {
	if parts, err := tfvalue.ImportID("host-a/web", "<host>/<name>"); err != nil || len(parts) != 2 || parts[0] != "host-a" || parts[1] != "web" {
		t.Errorf("got %q, %v", parts, err)
	}
	for id, want := range map[string]string{
		"web": "not of the shape <host>/<name>", "a/b/c": "not of the shape", "/web": "has an empty part", "host-a/": "has an empty part",
	} {
		if parts, err := tfvalue.ImportID(id, "<host>/<name>"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", id, parts, err)
		}
	}
}
