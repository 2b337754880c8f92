package volumebinding

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Credentials are removed from each host, also after the operation's timeout and if another host fails; the error names what is left.
func TestCredentials_RemovedFromEachHost(t *testing.T) {
	asked := map[string]bool{}
	undo := func(key string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			asked[key] = true
			return errors.Join(err, ctx.Err())
		}
	}
	put := secretResult{undo: map[string]func(context.Context) error{
		"a": undo("a", errors.New("no route to it")), "b": undo("b", nil), "c": undo("c", nil),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := put.revert(ctx, []string{"c"})
	if err == nil || err.Error() != "the credentials on host a: no route to it" {
		t.Errorf("got %v", err)
	}
	if !asked["b"] || asked["c"] {
		t.Errorf("asked: %v", asked)
	}
	if text := leftBehind(err); !strings.Contains(text, "Left behind") || !strings.Contains(text, "host a") || leftBehind(nil) != "" {
		t.Errorf("got %q", text)
	}
}
