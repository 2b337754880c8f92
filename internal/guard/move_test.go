package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A machine that moves has its storage on both hosts. No third one gets it meanwhile, and no other host may have the machine, too.
func TestAcquire_Moves(t *testing.T) {
	data := image("iqn.2026-01.io.virtclaim:data/0", "")
	data.Type, data.Protocol, data.Hosts, data.AccessMode = "network", "iscsi", []string{"a", "b", "c"}, volume.WriteExclusive
	web := live(user(t, "web", mine, "me", "ready", data))
	arrives := user(t, "web", mine, "me", "ready", data)
	arrives.Stored = strings.Replace(arrives.Stored, `phase="ready"`, `phase="ready" moves-from="a" moves-to="c" move="2" arrives="true"`, 1)
	other := live(user(t, "db", high, "x", "ready", data))
	for name, c := range map[string]struct {
		third host.Domain
		want  error
	}{
		"nothing":                {host.Domain{}, nil},
		"another machine":        {other, guard.ErrInUse},
		"the same, left":         {user(t, "web", mine, "me", "ready", data), guard.ErrInUse},
		"the same, moving there": {arrives, guard.ErrMovesElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("a", web)
			w.set("b", user(t, "web", mine, "me", "ready", data))
			if c.third.UUID != "" {
				w.set("c", c.third)
			}
			_, err := guard.Acquire(t.Context(), guard.Request{
				Host: "b", From: "a", Name: "web", UUID: mine, Owner: "me", Images: []volume.Image{data}, Hosts: w.host,
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
