package tfvalue

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QuantityType is a string with a size in Kubernetes' notation, such as 2Gi, 512M or 1073741824.
type QuantityType struct{ basetypes.StringType }

// Quantity is a value of QuantityType.
type Quantity struct{ basetypes.StringValue }

var (
	_ basetypes.StringTypable     = QuantityType{}
	_ basetypes.StringValuable    = Quantity{}
	_ xattr.ValidateableAttribute = Quantity{}
)

// NewQuantity returns s as a value.
func NewQuantity(s string) Quantity { return Quantity{basetypes.NewStringValue(s)} }

// QuantityOfKiB formats a number of KiB with the largest binary unit that divides it.
func QuantityOfKiB(kib uint) Quantity {
	return NewQuantity(resource.NewQuantity(int64(kib)*1024, resource.BinarySI).String())
}

// Equal reports whether other is the same type.
func (t QuantityType) Equal(other attr.Type) bool {
	o, ok := other.(QuantityType)
	return ok && t.StringType.Equal(o.StringType)
}

// String returns the type's name in framework errors.
func (t QuantityType) String() string { return "QuantityType" }

// ValueType returns a Quantity.
func (t QuantityType) ValueType(context.Context) attr.Value { return Quantity{} }

// ValueFromString wraps a string value.
func (t QuantityType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return Quantity{in}, nil
}

// ValueFromTerraform converts the wire value.
func (t QuantityType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	return Quantity{value.(basetypes.StringValue)}, nil
}

// Type returns QuantityType.
func (q Quantity) Type(context.Context) attr.Type { return QuantityType{} }

// Equal compares the texts.
func (q Quantity) Equal(other attr.Value) bool {
	o, ok := other.(Quantity)
	return ok && q.StringValue.Equal(o.StringValue)
}

// OrSame returns q if other is the same size in another notation, such as 2Gi and 2048Mi, and other otherwise. Sizes are compared in KiB,
// rounded up, as libvirt stores them.
func (q Quantity) OrSame(other Quantity) Quantity {
	a, errA := q.KiB()
	b, errB := other.KiB()
	if errA == nil && errB == nil && a == b {
		return q
	}
	return other
}

// ValidateAttribute refuses everything but positive quantities, at plan time.
func (q Quantity) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if q.IsNull() || q.IsUnknown() {
		return
	}
	if _, err := q.KiB(); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid quantity", err.Error())
	}
}

// CheckUnit refuses a bare number below 1Mi, such as memory = 512, which counts bytes: its unit was forgotten.
func (q Quantity) CheckUnit(at path.Path, unit string, diags *diag.Diagnostics) {
	text := q.ValueString()
	if kib, err := q.KiB(); err == nil && kib < 1024 && !strings.ContainsFunc(text, unicode.IsLetter) {
		if unit == "Mi" && len(text) == 1 { // of what is counted in mebibytes, a single digit is the number of gibibytes
			unit = "Gi"
		}
		diags.AddAttributeError(at, "A size without a unit",
			fmt.Sprintf("%s = %q is %[2]s bytes. Write its unit: %[2]s%s was probably meant.", at, text, unit))
	}
}

// Bytes returns the size in bytes, rounded up to whole KiB.
func (q Quantity) Bytes() (int64, error) {
	kib, err := q.KiB()
	return int64(kib) * 1024, err
}

// QuantityOfBytes is QuantityOfKiB of a number of bytes, rounded up.
func QuantityOfBytes(bytes int64) Quantity { return QuantityOfKiB(uint((bytes + 1023) / 1024)) }

// sane limits the input of Kubernetes' own ParseQuantity, which computes 10^n for any exponent n: 1e9999999 takes it minutes.
var sane = regexp.MustCompile(`^[-+.0-9]{1,40}(([eE][-+]?[0-9]{1,2})|[A-Za-z]{0,2})$`)

// ParseQuantity reads a number in Kubernetes' notation, which may also be negative or a fraction. Its error says what to write.
func ParseQuantity(text string) (resource.Quantity, error) {
	if sane.MatchString(text) {
		if parsed, err := resource.ParseQuantity(text); err == nil {
			return parsed, nil
		}
	}
	return resource.Quantity{}, fmt.Errorf("%.60q is not a Kubernetes quantity; write for example 512Mi or 2Gi", text)
}

// KiB returns the size in KiB, rounded up.
func (q Quantity) KiB() (uint, error) {
	parsed, err := ParseQuantity(q.ValueString())
	if err != nil {
		return 0, err
	}
	bytes := parsed.Value() // rounded up
	if bytes > math.MaxInt64-1024 {
		return 0, fmt.Errorf("%q is more than any host can have", q.ValueString())
	}
	if bytes <= 0 || parsed.Cmp(*resource.NewQuantity(bytes, resource.BinarySI)) != 0 {
		return 0, fmt.Errorf("%q is not a whole, positive number of bytes; write for example 512Mi or 2Gi", q.ValueString())
	}
	return uint((bytes-1)/1024 + 1), nil
}

// mostBytes is of a type that has 64 bits on all platforms.
const mostBytes int64 = math.MaxInt64

// ExactBytes returns the size in bytes. Unlike Bytes it rounds nothing, and takes 0: what is negative, no whole number of bytes, or more
// than an int64, is an error.
func (q Quantity) ExactBytes() (int64, error) {
	parsed, err := ParseQuantity(q.ValueString())
	if err != nil {
		return 0, err
	}
	// ParseQuantity makes of any larger number with a binary unit the largest one.
	beyond := parsed.CmpInt64(mostBytes)
	bytes := parsed.Value() // rounded up
	switch {
	case parsed.Sign() < 0:
		return 0, fmt.Errorf("%q is negative; write a size, for example 512Mi or 2Gi", q.ValueString())
	case beyond > 0, beyond == 0 && parsed.Format == resource.BinarySI:
		return 0, fmt.Errorf("%q is more than %d bytes, which is the most that is counted here; write less", q.ValueString(), mostBytes)
	case parsed.CmpInt64(bytes) != 0:
		return 0, fmt.Errorf("%q is not a whole number of bytes; write for example 512Mi or 2Gi", q.ValueString())
	}
	return bytes, nil
}

// ExactQuantity formats a number of bytes with the largest binary unit that divides it, and is the inverse of ExactBytes: it refuses the
// same numbers.
func ExactQuantity(bytes *big.Float) (Quantity, error) {
	exact, is := bytes.Int64()
	if is != big.Exact || exact < 0 {
		return Quantity{}, fmt.Errorf("%s is not a whole number of bytes from 0 to %d; round a fraction, for example with ceil",
			bytes.Text('g', 30), mostBytes)
	}
	return NewQuantity(resource.NewQuantity(exact, resource.BinarySI).String()), nil
}
