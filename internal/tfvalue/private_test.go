package tfvalue_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// privateMap has the values by key.
type privateMap map[string][]byte

func (m privateMap) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return m[key], nil
}

func (m privateMap) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	m[key] = value
	return nil
}

// Values are kept as JSON, as states have them that were written before.
func TestPrivate_IsJSON(t *testing.T) {
	private := privateMap{}
	var diags diag.Diagnostics
	for want, value := range map[string]any{`"team"`: "team", `1024`: int64(1024), `{"a":1}`: map[string]int{"a": 1}} {
		if tfvalue.SavePrivate(t.Context(), private, "key", value, &diags); string(private["key"]) != want {
			t.Errorf("%v is kept as %s, not %s", value, private["key"], want)
		}
	}
	if owner, ok, err := tfvalue.LoadPrivate[string](t.Context(), privateMap{"key": []byte(`"team"`)}, "key", &diags); owner != "team" || !ok || err != nil {
		t.Errorf("got %q, %t, %v", owner, ok, err)
	}
	if _, ok, err := tfvalue.LoadPrivate[string](t.Context(), private, "none", &diags); ok || err != nil {
		t.Errorf("a value where there is none: %v", err)
	}
	if _, ok, err := tfvalue.LoadPrivate[string](t.Context(), privateMap{"key": []byte(`7`)}, "key", &diags); !ok || err == nil {
		t.Error("no error of another type's value")
	}
	if diags.HasError() {
		t.Error(diags)
	}
}
