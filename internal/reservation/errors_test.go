package reservation

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// What is to be read of an error with usual names is short: beside it are only the commands to copy, and the link.
func TestErrors_AreShort(t *testing.T) {
	claim, users := annotatedClaim(nil), []string{"domain web on host node-a"}
	by := Record{ID: "63b24835-9ef9-4e54-b4ce-b33f72d90fc8", Name: "data", Owner: "shop", Mode: volume.WriteExclusive}
	for name, err := range map[string]error{
		"held":       heldError(claim, volume.WriteExclusive, []Record{by}),
		"two states": twoStatesError(claim, by, users),
		"foreign":    foreignError(claim, by, users),
	} {
		var read []string
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "  kubectl ") && !strings.HasPrefix(line, "See https://") {
				read = append(read, line)
			}
		}
		if text := strings.Join(read, "\n"); len(text) > 300 || !strings.Contains(err.Error(), "\n  kubectl patch ") {
			t.Errorf("%s: %d characters: %s", name, len(text), err)
		}
	}
}
