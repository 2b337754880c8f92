package providerdata

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

func TestFindMoved_OnHosts(t *testing.T) {
	broken := errors.New("it does not answer")
	for name, c := range map[string]struct {
		on          map[string]error
		want, fails string
	}{
		"the only host":              {map[string]error{"a": nil}, "a", ""},
		"one of some":                {map[string]error{"a": host.ErrNotFound, "b": nil, "c": host.ErrNoPool}, "b", ""},
		"none":                       {map[string]error{"a": host.ErrNotFound, "b": host.ErrNoPool}, "", "has domain web (asked: a, b)"},
		"not on the only host":       {map[string]error{"a": host.ErrNotFound}, "", "no host has domain web (asked: a)"},
		"two":                        {map[string]error{"a": nil, "b": host.ErrNotFound, "c": nil}, "", "hosts a, c have domain web each"},
		"one that does not answer":   {map[string]error{"a": nil, "b": broken}, "", "it does not answer\n\nIt may be there"},
		"the only one, not answered": {map[string]error{"a": broken}, "", "it does not answer"},
		"no hosts":                   {nil, "", "no host has domain web"},
	} {
		configs := map[string]host.Config{}
		for key := range c.on {
			configs[key] = host.Config{URI: "test:///default"}
		}
		got, err := New("", host.NewRegistry(configs), nil).FindMoved(t.Context(), "domain web", "<host>/<name>",
			func(_ context.Context, h *host.Host) error { return c.on[h.Key] })
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "by an import block with the id <host>/<name>") {
			t.Errorf("%s: the error does not tell what to do: %v", name, err)
		}
	}
}
