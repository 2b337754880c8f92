package function

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestQuantityToBytes_Exact(t *testing.T) {
	for text, want := range map[string]int64{
		"10Gi": 10 << 30, "512M": 512_000_000, "1.5Gi": 3 << 29, "1e9": 1_000_000_000, "1025": 1025, "0": 0, "2000m": 2,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := call(t, quantityToBytes(), types.StringValue(text)); err != nil || !got.Equal(types.Int64Value(want)) {
			t.Errorf("%s is %v, %v; want %d", text, got, err, want)
		}
	}
}

func TestQuantityToBytes_Refused(t *testing.T) {
	begin := time.Now()
	for text, want := range map[string]string{
		"": "not a Kubernetes quantity", "10GB": "not a Kubernetes quantity", "10 Gi": "not a Kubernetes quantity",
		"1e9999999": "not a Kubernetes quantity", strings.Repeat("\x01", 9999): "not a Kubernetes quantity",
		"-1Gi": "is negative", "1.5": "not a whole number of bytes", "100m": "not a whole number of bytes",
		"8Ei": "more than 9223372036854775807 bytes", "9223372036854775808": "more than 9223372036854775807 bytes",
	} {
		refuses(t, quantityToBytes(), types.StringValue(text), want)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBytesToQuantity_LargestUnit(t *testing.T) {
	for bytes, want := range map[int64]string{
		10737418240: "10Gi", 0: "0", 1: "1", 1536: "1536", 1 << 10: "1Ki", 1 << 60: "1Ei", math.MaxInt64: "9223372036854775807",
	} {
		number := types.NumberValue(new(big.Float).SetPrec(512).SetInt64(bytes))
		if got, err := call(t, bytesToQuantity(), number); err != nil || !got.Equal(types.StringValue(want)) {
			t.Errorf("%d is %v, %v; want %s", bytes, got, err, want)
		}
	}
}

func TestBytesToQuantity_Refused(t *testing.T) {
	for _, text := range []string{"-1", "0.5", "1024.000000000000000000001", "9223372036854775808", "1e300"} {
		f, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		refuses(t, bytesToQuantity(), types.NumberValue(f), "not a whole number of bytes from 0 to 9223372036854775807")
	}
}
