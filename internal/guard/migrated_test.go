package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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

// users are the uses of an image on some hosts.
func (w *world) users(t *testing.T, i volume.Image, keys ...string) (all []guard.Use) {
	t.Helper()
	for _, key := range keys {
		uses, err := guard.Users(t.Context(), key, place{w, key}, i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, uses...)
	}
	return all
}

// virsh migrate leaves the definition on the source by default.
func TestCheckUses(t *testing.T) {
	data := image("/ssd/data", "g")
	db, away := user(t, "db", high, "me", "ready", data), map[string]string{"a " + high: host.ReasonMigrated}
	over, theirs := user(t, "db", high, "me", "ready", image("/ssd/over", "o"), data), user(t, "theirs", high, "", "", image("/ssd/data", ""))
	const runs, may = "was migrated: host b runs it, and host a has its definition", "was migrated, as host a says, and no host in hosts that answers runs it"
	type domains map[string]host.Domain
	for name, c := range map[string]struct {
		at      domains
		reasons map[string]string
		down    string
		refuse  string
	}{
		"no other domain":                      {nil, nil, "", ""},
		"a guest that runs there":              {domains{"a": db, "b": live(db)}, nil, "", "domain db, which has /ssd/data: it " + runs},
		"one over it":                          {domains{"a": over, "b": live(over)}, nil, "", runs},
		"one of others":                        {domains{"a": theirs, "b": live(theirs)}, nil, "", "domain theirs, which has /ssd/data: it " + runs},
		"one that went on from there":          {domains{"a": db, "b": db, "c": live(db)}, nil, "", "was migrated: host c runs it"},
		"one that is off on both":              {domains{"a": db, "b": db}, nil, "", ""},
		"one that came back":                   {domains{"a": live(db), "b": db}, nil, "", ""},
		"one that runs here, for sure":         {domains{"a": live(db)}, nil, "b", ""},
		"one that is off":                      {domains{"a": db}, nil, "", ""},
		"one that is off, and who knows":       {domains{"a": db}, nil, "b", ""},
		"one that was migrated, and runs":      {domains{"a": db, "b": live(db)}, away, "", runs},
		"one that was migrated, and is off":    {domains{"a": db, "b": db}, away, "", may},
		"one that was migrated out of sight":   {domains{"a": db}, away, "", may},
		"one that was migrated, and who knows": {domains{"a": db}, away, "b", may},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for key, d := range c.at {
				w.set(key, d)
			}
			w.down = c.down
			err := w.all(c.reasons).CheckUses(t.Context(), w.users(t, data, "a"))
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
			if err := (guard.Hosts{}).CheckUses(t.Context(), w.users(t, data, "a")); err != nil {
				t.Errorf("without a configuration there are no other hosts: %v", err)
			}
		})
	}
}

// A domain may be undefined between its host's answers.
func TestCheckUses_GoneMeanwhile(t *testing.T) {
	data := image("/ssd/data", "g")
	db := user(t, "db", high, "me", "ready", data)
	w := newWorld()
	w.set("a", db)
	here := w.users(t, data, "a")
	w.set("a", host.Domain{UUID: high})
	if err := w.all(nil).CheckUses(t.Context(), here); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	w.set("b", db)
	if err := w.all(nil).CheckUses(t.Context(), here); !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "host b has it, and host a does not") {
		t.Errorf("it went to host b: %v", err)
	}
	w.set("b", host.Domain{UUID: high})
	w.down = "b"
	if err := w.all(nil).CheckUses(t.Context(), here); !errors.Is(err, guard.ErrInUse) || !errors.Is(err, guard.ErrUnanswered) {
		t.Errorf("host b may have it: %v", err)
	}
}

// A binding may cover both hosts of a migration. It is not known which of them the machine's configuration has.
func TestCheckUses_OnBothHosts(t *testing.T) {
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
			err := w.all(nil).CheckUses(t.Context(), w.users(t, bound, "a", "b"))
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
		})
	}
}

// Other hosts are asked about domains that are off only, each once.
func TestCheckUses_AsksOnlyAboutDomainsThatAreOff(t *testing.T) {
	data := image("/ssd/data", "g")
	off := user(t, "db", high, "me", "ready", data)
	pending := live(user(t, "db", high, "me", "ready", image("/ssd/other", "o")))
	pending.Stored = off.Stored
	for name, c := range map[string]struct {
		domain host.Domain
		asked  []string
	}{
		"no domain":                         {host.Domain{UUID: high}, nil},
		"one that runs":                     {live(off), nil},
		"the journal of a clone":            {copier(t, high, data), nil},
		"one that runs, and gets it later":  {pending, []string{"a"}},
		"one that is off on its own host":   {off, []string{"a", "b", "c"}},
		"one that is saved on its own host": {saved(off), []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("a", c.domain)
			var mu sync.Mutex
			var asked []string
			all := w.all(nil)
			peers := all.Host
			all.Host = func(key string) (guard.Peer, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, key)
				return peers(key)
			}
			if err := all.CheckUses(t.Context(), w.users(t, data, "a")); err != nil {
				t.Error(err)
			}
			if slices.Sort(asked); !slices.Equal(asked, c.asked) {
				t.Errorf("asked %v, want %v", asked, c.asked)
			}
		})
	}
}
