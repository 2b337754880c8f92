package volumebinding

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// Credentials are removed from each host, also after the operation's timeout and if another host fails; the error names what is left.
func TestCredentials_RemovedFromEachHost(t *testing.T) {
	asked := map[string]bool{}
	var undo revert.Stack
	for key, err := range map[string]error{"a": errors.New("no route to it"), "b": nil} {
		undo.Push(removal(key, func(ctx context.Context) error {
			asked[key] = true
			return errors.Join(err, ctx.Err())
		}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := undo.Revert(ctx)
	if err == nil || err.Error() != "the credentials on host a: no route to it" {
		t.Errorf("got %v", err)
	}
	if !asked["b"] {
		t.Errorf("asked: %v", asked)
	}
	if text := leftBehind(err); !strings.Contains(text, "Left behind") || !strings.Contains(text, "host a") || leftBehind(nil) != "" {
		t.Errorf("got %q", text)
	}
}
