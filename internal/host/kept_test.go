package host

import (
	"testing"
	"time"
)

// What ends that something is kept.
func TestKept_Get(t *testing.T) {
	type things = kept[string, int, bool]
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
		k := &things{time: time.Minute}
		_, at, isKept := k.get("web", 0)
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
		if _, _, isKept := k.get("web", c.entry); isKept != c.isKept {
			t.Errorf("%s: kept is %t", name, isKept)
		}
	}
	k := &things{time: time.Minute}
	_, at, _ := k.get("web", 0)
	at.began = at.began.Add(-k.time)
	k.keep("web", 0, true, at)
	if _, _, isKept := k.get("web", 0); isKept {
		t.Error("kept for too long")
	}
}
