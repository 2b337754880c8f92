package volume

import "testing"

// Bindings in older states have no instance, and are not known to be another one.
func TestParseBinding_RoundTrip(t *testing.T) {
	const id = "9d3f0c1b-6b0e-5d0c-8f5e-2f6d3c1b7a90"
	for text, want := range map[string]BindingRef{
		"":                            {},
		id:                            {ID: id},
		id + "/0a1b2c3d":              {ID: id, Instance: "0a1b2c3d"},
		id + "/0a1b2c3d/vms/golden.1": {ID: id, Instance: "0a1b2c3d", Namespace: "vms", Claim: "golden.1"},
	} {
		if got := ParseBinding(text); got != want || got.String() != text {
			t.Errorf("%q is %+v, and written %q", text, got, got.String())
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{id + "/a", id + "/b/vms/golden", true},
		{id + "/a", id + "/a/vms/golden", false},
		{id, id + "/a", false},
		{"", "", false},
		{"x/a", "y/b", false},
	} {
		if got := OtherInstance(c.a, c.b); got != c.want {
			t.Errorf("OtherInstance(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
