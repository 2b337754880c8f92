//go:build acc

package volumebinding_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A host that is off for good is removed from the provider, and from its bindings in the same apply, or together with them. A warning names
// what it may still have.
func TestAccVolumeBinding_RemovedHost(t *testing.T) {
	for _, c := range []struct {
		name string
		now  string
	}{
		{"that stay", binding(fromClaim("left", "data"), "", "host-a")},
		{"that go", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "left", "data", acctest.LUN(t, l, true, ""))
			cli := configured(t, l, "left", binding(fromClaim("left", "data"), "", "host-a", "host-b"))
			cli.Must("apply", "-auto-approve")
			id := idOf(t, cli)

			cli.Write("main.tf", withoutHost(acctest.Provider(l, "left"), "host-b")+c.now)
			out := cli.Must("apply", "-auto-approve", "-no-color")
			says(t, out, "Warning: A host is given up", "The provider no longer has host host-b", "virsh secret-undefine "+id)
			if _, err := l.Hosts["host-b"].Virsh(t.Context(), "secret-undefine", id); err != nil {
				t.Error(err)
			}
			silent(t, cli.Must("destroy", "-auto-approve", "-no-color"), "host-b")
			heldBy(t, l, "left", "data")
		})
	}
}

// withoutHost is a provider's configuration without one of its hosts.
func withoutHost(config, host string) string {
	var kept strings.Builder
	for line := range strings.Lines(config) {
		if !strings.HasPrefix(strings.TrimSpace(line), host+" = ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
