package tfvalue_test

import (
	"math"
	"math/big"
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

func TestQuantity_ExactBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1025": 1025, "10Gi": 10 << 30, "0.5Ki": 512, "1G": 1_000_000_000, "1e6": 1_000_000, "2000m": 2, "+1Mi": 1 << 20,
		"7Ei": 7 << 60, "9223372036854775807": math.MaxInt64, "9223372036854775807.0": math.MaxInt64, "9007199254740991Ki": math.MaxInt64 - 1023,
	} {
		if got, err := tfvalue.NewQuantity(text).ExactBytes(); err != nil || got != want {
			t.Errorf("%s is %d bytes, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "not a Kubernetes quantity", "1e9999999": "not a Kubernetes quantity", strings.Repeat("9", 9999): "not a Kubernetes quantity",
		"-1": "is negative", "-9Ei": "is negative", "-1e-9": "is negative", "1e-9": "not a whole number", "1.5": "not a whole number",
		"100m": "not a whole number", "1024.0000000000001": "not a whole number", "0.0000000000000001Ki": "not a whole number",
		"8Ei": "more than 9223372036854775807", "9Ei": "more than 9223372036854775807", "9223372036854775808": "more than 9223372036854775807",
		"9.3E": "more than 9223372036854775807", "9e99": "more than 9223372036854775807", "9223372036854775807.5": "more than 9223372036854775807",
	} {
		if got, err := tfvalue.NewQuantity(text).ExactBytes(); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%.50q: %d, %v; want %q", text, got, err, want)
		}
	}
}

func TestParseQuantity_IsNoSize(t *testing.T) {
	for _, text := range []string{"-1", "100m", "0", "9e99"} {
		if q, err := tfvalue.ParseQuantity(text); err != nil || text != "0" && q.IsZero() {
			t.Errorf("%s: %v, %v", text, q, err)
		}
	}
}

func TestExactQuantity_LargestUnit(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1Ki", 1536: "1536", 3 << 20: "3Mi", 10 << 30: "10Gi", 1 << 60: "1Ei", 1_000_000_000: "1000000000",
		math.MaxInt64: "9223372036854775807",
	} {
		got, err := tfvalue.ExactQuantity(new(big.Float).SetInt64(bytes))
		if err != nil || got.ValueString() != want {
			t.Errorf("%d is %s, %v; want %s", bytes, got, err, want)
		}
		if back, err := got.ExactBytes(); err != nil || back != bytes {
			t.Errorf("%s is %d, %v; want %d", got, back, err, bytes)
		}
	}
	infinite := new(big.Float).SetInf(false)
	for _, f := range []*big.Float{big.NewFloat(-1), big.NewFloat(0.5), big.NewFloat(1 << 63), big.NewFloat(1e300), infinite} {
		if got, err := tfvalue.ExactQuantity(f); err == nil || !strings.Contains(err.Error(), "from 0 to 9223372036854775807") {
			t.Errorf("%v is %s, %v", f, got, err)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	f.Add("2Gi")
	f.Add("-0.5e3k")
	f.Add("1e9999999") // ParseQuantity would not return
	f.Fuzz(func(t *testing.T, text string) {
		kib, err := tfvalue.NewQuantity(text).KiB()
		if exact, wrong := tfvalue.NewQuantity(text).ExactBytes(); err == nil && (wrong != nil || uint(exact+1023)/1024 != kib) {
			t.Errorf("%q is %d KiB, and %d bytes, %v", text, kib, exact, wrong)
		}
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
