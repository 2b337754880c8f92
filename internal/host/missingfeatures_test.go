package host

import "testing"

func TestLacks_SaysTheReason(t *testing.T) {
	for message, want := range map[string]string{
		"the CPU is incompatible with host CPU: Host CPU does not provide required features: hle, avx512f": "hle, avx512f",
		"the CPU is incompatible with host CPU": "the CPU is incompatible with host CPU",
		"":                                      "",
	} {
		if got := lacks(message); got != want {
			t.Errorf("of %q: %q, want %q", message, got, want)
		}
	}
}
