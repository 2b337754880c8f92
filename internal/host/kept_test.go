package host

import (
	"testing"
	"time"
)

// What ends that something is kept.
func TestKept_Get(t *testing.T) {
	type things = kept[string, int, bool]
	minute := trust{within: time.Minute}
	for name, c := range map[string]struct {
		between, after func(*things)
		entry          int
		isKept         bool
	}{
		"nothing":                 {isKept: true},
		"an event":                {after: func(k *things) { k.drop("web") }},
		"an event in the reading": {between: func(k *things) { k.drop("web") }},
		"another's event":         {after: func(k *things) { k.drop("other") }, isKept: true},
		"an unclear event":        {after: (*things).dropAll},
		"one in the reading":      {between: (*things).dropAll},
		"gone from the list":      {after: func(k *things) { k.prune(nil) }},
		"in the list":             {after: func(k *things) { k.prune(map[string]bool{"web": true}) }, isKept: true},
		"another entry":           {entry: 1},
	} {
		k := &things{}
		_, at, isKept := k.get("web", 0, minute)
		if isKept {
			t.Errorf("%s: kept before it was read", name)
		}
		if c.between != nil {
			c.between(k)
		}
		k.keep("web", 0, true, at)
		if c.after != nil {
			c.after(k)
		}
		if _, _, isKept := k.get("web", c.entry, minute); isKept != c.isKept {
			t.Errorf("%s: kept is %t", name, isKept)
		}
	}
	k := &things{}
	_, at, _ := k.get("web", 0, minute)
	at.began = at.began.Add(-minute.within)
	k.keep("web", 0, true, at)
	if _, _, isKept := k.get("web", 0, minute); isKept {
		t.Error("kept for too long")
	}
}

// What is deleted relies on what was at rest when it was read: not on a volume that was being made, or whose journal has had an event.
func TestKept_Rest(t *testing.T) {
	k := &kept[string, int, bool]{}
	now := trust{within: time.Minute, rest: 2 * time.Second}
	_, at, _ := k.get("web", 0, now)
	first := at.began
	for _, c := range []struct {
		what   string
		before func()
		after  time.Duration
		isKept bool
	}{
		{"first seen", func() {}, 0, false},
		{"soon afterwards", func() {}, time.Second, false},
		{"at rest", func() {}, 2 * time.Second, true},
		{"soon after an event", func() { k.drop("web"); _, at, _ = k.get("web", 0, now) }, 3 * time.Second, false},
		{"at rest again", func() {}, 5 * time.Second, true},
		{"seen long ago", func() {}, 15 * time.Second, false},
		{"and at rest", func() {}, 17 * time.Second, true},
	} {
		c.before()
		at.began = first.Add(c.after)
		k.keep("web", 0, true, at)
		if _, _, isKept := k.get("web", 0, now); isKept != c.isKept {
			t.Errorf("%s: kept is %t", c.what, isKept)
		}
	}
}
