package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// peer is a place with the reasons why its domains are off.
type peer struct {
	place
	reasons map[string]string // by host and UUID
}

func (p peer) State(_ context.Context, id string) (host.State, error) {
	domains, err := p.Domains(context.Background())
	for _, d := range domains {
		if d.UUID == id {
			return host.State{Active: d.Live != "", Reason: p.reasons[p.key+" "+id]}, nil
		}
	}
	if err == nil {
		err = host.ErrNotFound
	}
	return host.State{}, err
}

// all are the hosts a, b and c.
func (w *world) all(reasons map[string]string) guard.Hosts {
	return guard.Hosts{Keys: []string{"a", "b", "c"}, Host: func(key string) (guard.Peer, error) { return peer{place{w, key}, reasons}, nil }}
}

// virsh migrate moves the machine to another host, where only its metadata show that it still uses the file of this one.
func TestCheckElsewhere(t *testing.T) {
	data, other := image("/ssd/data", "g"), image("/ssd/data", "of another disk")
	moved := image("/mnt/data", "g")
	bound := of(shared(volume.WriteExclusive, "a"), "id/1/ns/claim")
	copied := user(t, "copy", low, "me", "ready", data)
	copied.Stored = strings.Replace(copied.Stored, "<uuid>"+low, "<uuid>"+high, 1)
	copied.UUID = high
	rewritten := live(user(t, "db", high, "me", "ready", data))
	rewritten.Live = strings.ReplaceAll(rewritten.Live, `file="/ssd/data"`, `file="/mnt/data"`)
	unmarked := user(t, "theirs", high, "", "", image("/ssd/data", ""))
	type domains map[string]host.Domain
	for name, c := range map[string]struct {
		image   volume.Image
		at      domains
		reasons map[string]string
		down    string
		refuse  string
	}{
		"nobody":                                {data, nil, nil, "", ""},
		"a guest that runs":                     {data, domains{"b": live(user(t, "db", high, "me", "ready", data))}, nil, "", "was migrated: host b runs it"},
		"one over it":                           {data, domains{"b": live(user(t, "db", high, "me", "ready", image("/ssd/over", "o"), data))}, nil, "", "host b runs it"},
		"one that is off there":                 {data, domains{"c": user(t, "db", high, "me", "ready", data)}, nil, "", "host c has its definition. If only"},
		"one whose folder is mounted elsewhere": {data, domains{"b": live(user(t, "db", high, "me", "ready", moved))}, nil, "", "host b runs it"},
		"one whose path was rewritten":          {data, domains{"b": rewritten}, nil, "", "host b runs it"},
		"one with a copy of the disk":           {data, domains{"b": live(user(t, "db", high, "me", "ready", at("b", moved)))}, nil, "", ""},
		"one with a file of that path":          {data, domains{"b": live(user(t, "db", high, "me", "ready", at("b", data)))}, nil, "", "host b runs it"},
		"one with another disk of that path":    {data, domains{"b": live(user(t, "db", high, "me", "ready", other))}, nil, "", ""},
		"one of others with that path":          {data, domains{"b": live(unmarked)}, nil, "", ""},
		"one with a copy of the metadata":       {data, domains{"b": live(copied)}, nil, "", ""},
		"one of others that was here":           {data, domains{"a": unmarked, "b": live(unmarked)}, nil, "", "domain theirs, which has /ssd/data, was migrated: host b runs it"},
		"one that came back":                    {data, domains{"a": live(user(t, "db", high, "me", "ready", data)), "b": user(t, "db", high, "me", "ready", data)}, nil, "", ""},
		"one that came back and went":           {data, domains{"b": user(t, "db", high, "me", "ready", data)}, map[string]string{"b " + high: "migrated"}, "", ""},
		"a host that does not answer":           {data, domains{"a": user(t, "db", high, "me", "ready", data)}, nil, "b", ""},
		"one that may be there":                 {data, domains{"a": user(t, "db", high, "me", "ready", data)}, map[string]string{"a " + high: "migrated"}, "b", "domain db, which has it, is off on host a because it was migrated, and a host that may run it does not answer"},
		"one that is nowhere":                   {data, domains{"a": user(t, "db", high, "me", "ready", data)}, map[string]string{"a " + high: "migrated"}, "", "is off on host a because it was migrated, and none of the hosts in hosts runs it"},
		"one that was shut down there":          {data, domains{"a": unmarked, "b": unmarked}, map[string]string{"a " + high: "migrated", "b " + high: "shutdown"}, "", ""},
		"one that may have gone on from there":  {data, domains{"a": unmarked, "b": unmarked}, map[string]string{"a " + high: "migrated"}, "", "none of the hosts in hosts"},
		"one with the binding":                  {bound, domains{"b": live(user(t, "db", high, "me", "ready", bound))}, nil, "", "host b runs it"},
		"one with another binding":              {bound, domains{"b": live(user(t, "db", high, "me", "ready", of(bound, "other/1")))}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for key, d := range c.at {
				w.set(key, d)
			}
			w.down = c.down
			here, err := guard.Users(t.Context(), "a", place{w, "a"}, c.image)
			if err != nil {
				t.Fatal(err)
			}
			err = w.all(c.reasons).CheckElsewhere(t.Context(), []string{"a"}, c.image, here, nil)
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
		})
	}
}

// Without a configuration there are no other hosts.
func TestCheckElsewhere_NoHosts(t *testing.T) {
	if err := (guard.Hosts{}).CheckElsewhere(t.Context(), []string{"a"}, image("/ssd/data", "g"), []guard.Use{{UUID: high, Host: "a"}}, nil); err != nil {
		t.Error(err)
	}
}

// A binding may cover both hosts of a migration. It is not known which of them the machine's configuration has.
func TestCheckElsewhere_OnBothHosts(t *testing.T) {
	bound := of(shared(volume.WriteExclusive, "a", "b"), "id/1/ns/claim")
	is := user(t, "db", high, "me", "ready", bound)
	for name, c := range map[string]struct {
		a, b   host.Domain
		refuse string
	}{
		"it runs on one, and the other one has its definition": {is, live(is), "host b runs it, and host a has its definition"},
		"both have its definition":                             {is, is, ""},
		"another machine has the storage, too":                 {user(t, "other", low, "me", "ready", bound), live(is), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("a", c.a)
			w.set("b", c.b)
			var here []guard.Use
			for _, key := range []string{"a", "b"} {
				uses, err := guard.Users(t.Context(), key, place{w, key}, bound)
				if err != nil {
					t.Fatal(err)
				}
				here = append(here, uses...)
			}
			err := w.all(nil).CheckElsewhere(t.Context(), []string{"a", "b"}, bound, here, nil)
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
			if err := w.all(nil).CheckElsewhere(t.Context(), []string{"a", "b"}, bound, here, func(guard.Use) bool { return true }); err != nil {
				t.Errorf("a use that is spared: %v", err)
			}
		})
	}
}

// A machine gets no disk that a guest of another host uses; domains that are off, and hosts that do not answer, are no conflict.
func TestCheckTaken(t *testing.T) {
	data := image("/ssd/data", "g")
	bound := of(shared(volume.WriteExclusive, "a"), "id/1/ns/claim")
	free := of(shared(volume.WriteExclusive, "a", "b"), "other/1/ns/claim")
	for name, c := range map[string]struct {
		at      host.Domain
		down    string
		refuses bool
	}{
		"a guest that runs":                  {live(user(t, "db", high, "me", "ready", data)), "", true},
		"one that is off":                    {user(t, "db", high, "me", "ready", data), "", false},
		"one that is saved":                  {saved(user(t, "db", high, "me", "ready", data)), "", true},
		"one with another disk of that path": {live(user(t, "db", high, "me", "ready", image("/ssd/data", "other"))), "", false},
		"one of others":                      {live(user(t, "db", high, "", "", data)), "", false},
		"a host that does not answer":        {live(user(t, "db", high, "me", "ready", data)), "b", false},
		"one with the binding":               {live(user(t, "db", high, "me", "ready", bound)), "", true},
		"one with a binding for its host":    {live(user(t, "db", high, "me", "ready", free)), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("b", c.at)
			w.down = c.down
			err := w.all(nil).CheckTaken(t.Context(), "a", []volume.Image{image("/ssd/root", "r"), data, bound, free})
			if errors.Is(err, guard.ErrInUse) != c.refuses || !c.refuses && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// at is an image that is for another host.
func at(key string, i volume.Image) volume.Image {
	i.Hosts = []string{key}
	return i
}
