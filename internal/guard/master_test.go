package guard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// master is a master that host a clones.
func (w *world) master(images ...volume.Image) guard.Master {
	return guard.Master{Host: "a", Images: images, Hosts: w.host}
}

// copier is the journal of a clone.
func copier(t *testing.T, id string, master volume.Image) host.Domain {
	t.Helper()
	chain := volume.Over(image("/ssd/new", ""), nil, volume.CopyOnWrite, volume.Volume{Images: []volume.Image{master}})
	name := "virtclaim-0123456789abcdef"
	text, err := domainxml.BuildJournal(domainxml.Journal{
		Name: name, UUID: id, Note: domainxml.Note{Pool: "ssd", Volume: "new"}, Copy: &chain,
	})
	if err != nil {
		t.Fatal(err)
	}
	return host.Domain{Name: name, UUID: id, Stored: text}
}

// filler is the journal of filling a volume.
func filler(t *testing.T, id string, target volume.Image) host.Domain {
	t.Helper()
	disk, err := domainxml.WritableDiskXML(volume.Volume{Images: []volume.Image{target}})
	if err != nil {
		t.Fatal(err)
	}
	name := "virtclaim-fedcba9876543210"
	text, err := domainxml.BuildJournal(domainxml.Journal{
		Name: name, UUID: id, Note: domainxml.Note{Owner: "me", Phase: "filling", Pool: "ssd", Volume: "new", Target: disk},
	})
	if err != nil {
		t.Fatal(err)
	}
	return host.Domain{Name: name, UUID: id, Stored: text}
}

func TestAwaitQuiet(t *testing.T) {
	exclusive, writers, reader := shared(volume.WriteExclusive, "a", "b"), shared(volume.WriteShared, "a", "b"), shared(volume.ReadShared, "a", "b")
	plugs := user(t, "db", high, "x", "ready", exclusive)
	plugs.Live = "<domain/>"
	discards := live(user(t, "db", high, "x", "ready", exclusive))
	discards.Live = strings.ReplaceAll(discards.Live, "</disk>", "<transient/></disk>")
	drives := live(user(t, "db", high, "x", "ready", exclusive))
	drives.Live = strings.Replace(drives.Live, `device="disk"`, `device="cdrom"`, 1)
	reads := live(user(t, "db", high, "x", "ready", exclusive))
	reads.Live = strings.ReplaceAll(reads.Live, "</disk>", "<readonly/></disk>")
	floppy := host.Domain{Name: "theirs", UUID: high, Live: strings.Replace(discards.Stored, `device="disk"`, `device="floppy"`, 1)}
	unit := live(user(t, "db", high, "x", "ready", exclusive))
	unit.Live = strings.Replace(unit.Live, `device="disk"`, `device="lun"`, 1)
	theirs := user(t, "theirs", high, "", "", exclusive)
	theirs.Live = "<domain/>"
	for name, c := range map[string]struct {
		master volume.Image
		other  host.Domain
		refuse string
		waits  bool
	}{
		"nobody":                             {exclusive, host.Domain{}, "", false},
		"what fills it":                      {exclusive, live(filler(t, high, exclusive)), "fills the master data. Wait", false},
		"filling it was interrupted":         {reader, filler(t, high, exclusive), "apply the configuration of that virtclaim_volume_content again", false},
		"itself":                             {exclusive, live(copier(t, mine, exclusive)), "", false},
		"one that runs":                      {exclusive, live(user(t, "db", high, "x", "ready", exclusive)), "domain db on host b runs and writes to the master data", false},
		"one of many that write":             {writers, live(user(t, "db", high, "x", "ready", writers)), "domain db on host b runs and writes", false},
		"one that runs beside the bindings":  {reader, live(user(t, "db", high, "x", "ready", exclusive)), "domain db on host b runs and writes", false},
		"one that runs over it":              {exclusive, live(user(t, "db", high, "x", "ready", image("/ssd/over", "o"), exclusive)), "", false},
		"one that was snapshotted":           {exclusive, snapshotted(t, exclusive), "has the overlay /ssd/over on top of its volume data", false},
		"one that reads":                     {reader, live(user(t, "db", high, "x", "ready", reader)), "", false},
		"one that discards what it writes":   {exclusive, discards, "", false},
		"one that has it in a drive":         {exclusive, drives, "", false},
		"one that has it read-only":          {exclusive, reads, "", false},
		"one that writes to a floppy":        {exclusive, floppy, "domain theirs on host b runs and writes", false},
		"one that has the logical unit":      {exclusive, unit, "domain db on host b runs and writes", false},
		"one that is off":                    {exclusive, user(t, "db", high, "x", "ready", exclusive), "", false},
		"one that never gets on":             {exclusive, user(t, "db", low, "x", "creating", exclusive), "is about to write to the master data: its creation goes on", true},
		"one that never plugs it in":         {exclusive, plugs, "it waits to be plugged in", true},
		"one of others that will at a start": {exclusive, theirs, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, started := newWorld(), time.Now()
				w.set("b", c.other)
				err := w.master(c.master).AwaitQuiet(t.Context())
				if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
					t.Errorf("got %v, want %q", err, c.refuse)
				}
				if waited := time.Since(started); waited > 0 != c.waits || waited > 2*time.Minute {
					t.Errorf("it waited for %s", waited)
				}
			})
		})
	}
}

// For a read-shared master only the clone's own host must answer.
func TestAwaitQuiet_NeedsWritersHosts(t *testing.T) {
	for mode, want := range map[volume.AccessMode]map[string]bool{
		volume.WriteExclusive: {"a": true, "b": true}, volume.WriteShared: {"a": true, "b": true}, volume.ReadShared: {"a": true, "b": false},
	} {
		for down, refused := range want {
			w := newWorld()
			w.down = down
			err := w.master(shared(mode, "a", "b")).AwaitQuiet(t.Context())
			if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "is not known: no route to host "+down) {
				t.Errorf("%s, host %s is down: %v", mode, down, err)
			}
		}
	}
}

// A machine and a clone begin concurrently, on two hosts: the master is not written to during the copy, and exactly one of the two yields.
func TestAwaitQuiet_ConflictWithStartingMachine(t *testing.T) {
	exclusive := shared(volume.WriteExclusive, "a", "b")
	for round := range 200 {
		synctest.Test(t, func(t *testing.T) {
			w, pause := newWorld(), func() { time.Sleep(time.Duration(rand.IntN(4)) * time.Second) }
			var runs, cloned error
			var group sync.WaitGroup
			group.Go(func() {
				pause()
				d := user(t, "db", high, "x", domainxml.Creating, exclusive)
				w.set("b", d)
				pause()
				runs = acquire(t, guard.Request{
					Host: "b", Name: "db", UUID: high, Owner: "x", Images: []volume.Image{exclusive}, Hosts: w.host,
				})
				pause()
				if runs != nil {
					d = host.Domain{UUID: high}
				}
				w.set("b", live(d))
			})
			group.Go(func() {
				pause()
				w.set("a", copier(t, mine, exclusive))
				pause()
				if cloned = w.master(exclusive).AwaitQuiet(t.Context()); cloned == nil {
					if running := w.running(); len(running) > 0 {
						t.Errorf("round %d: %v runs when the copy begins", round, running)
					}
					time.Sleep(4 * time.Second)
					cloned = w.master(exclusive).AwaitQuiet(t.Context())
				}
				if running := w.running(); cloned == nil && len(running) > 0 {
					t.Errorf("round %d: %v ran while it was copied", round, running)
				}
				w.set("a", host.Domain{UUID: mine})
			})
			group.Wait()
			if (runs == nil) == (cloned == nil) {
				t.Errorf("round %d: the machine %v, the clone %v", round, errOrDone(runs), errOrDone(cloned))
			}
		})
	}
}

func errOrDone(err error) string { return fmt.Sprint("ended with ", err) }

// Machines with overlays of one disk are compatible, also those whose metadata have the disk as write-exclusive. A machine that writes to the
// disk is compatible with none of them. It waits for them, also if their owner is a former one: they have the very same disk.
func TestAcquire_OverlaysOfOneDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := image("/ssd/golden", "g")
		w := newWorld()
		w.set("a", user(t, "db", high, "x", "ready", image("/ssd/db", "d"), disk))
		enter := func(images ...volume.Image) error {
			return acquire(t, guard.Request{
				Host: "a", Name: "web", UUID: mine, Owner: "me", Images: volume.Volume{Images: images}.Uses(), Hosts: w.host,
			})
		}
		if err := enter(image("/ssd/web", "w"), disk); err != nil {
			t.Errorf("an overlay: %v", err)
		}
		const has = "domain db on host a has it as its disk data (read-shared)"
		if err := enter(image("/ssd/golden", "other")); !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), has) || strings.Contains(err.Error(), "waited") {
			t.Errorf("a writer to another disk of that name: %v", err)
		}
		if err := enter(disk); !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), has) || !strings.Contains(err.Error(), "waited") {
			t.Errorf("a writer: %v", err)
		}
	})
}

// An overlay is not created over a disk to which a machine writes, or will write when its managed save is restored.
func TestAwaitQuiet_Overlay(t *testing.T) {
	disk := image("/ssd/golden", "g")
	for name, c := range map[string]struct {
		other  host.Domain
		refuse string
	}{
		"off":   {user(t, "db", high, "x", "ready", disk), ""},
		"runs":  {live(user(t, "db", high, "x", "ready", disk)), "runs and writes to the master /ssd/golden. An overlay needs its master to stay as it is"},
		"saved": {saved(user(t, "db", high, "x", "ready", disk)), "is saved (virsh managedsave), and goes on to write to the master /ssd/golden"},
	} {
		w := newWorld()
		w.set("a", c.other)
		m := w.master(disk)
		m.Overlay = true
		if err := m.AwaitQuiet(t.Context()); (err != nil) != (c.refuse != "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("a machine that is %s: got %v, want %q", name, err, c.refuse)
		}
	}
}

// A machine that was migrated by hand writes to the master on another host than the one that has its definition.
func TestAwaitQuiet_Migrated(t *testing.T) {
	data, bound := image("/ssd/data", "g"), of(shared(volume.WriteExclusive, "a"), "id/1/ns/claim")
	db, over := user(t, "db", high, "x", "ready", data), user(t, "db", high, "x", "ready", image("/ssd/over", "o"), data)
	claimed, theirs := user(t, "db", high, "x", "ready", bound), user(t, "db", high, "", "", image("/ssd/data", ""))
	away := map[string]string{"a " + high: host.ReasonMigrated}
	for name, c := range map[string]struct {
		master      volume.Image
		here, there host.Domain
		reasons     map[string]string
		overlay     bool
		refuse      string
	}{
		"a disk that is written to":      {data, db, live(db), nil, false, "domain db, which has /ssd/data: it was migrated: host b runs it"},
		"an overlay of it":               {data, db, live(db), nil, true, "host b runs it"},
		"a disk that is only below":      {data, over, live(over), nil, true, ""},
		"a disk of one that is off":      {data, db, db, nil, false, ""},
		"a claim that is written to":     {bound, claimed, live(claimed), nil, false, "domain db, which has data: it was migrated: host b runs it"},
		"one of others":                  {data, theirs, live(theirs), nil, false, "host b runs it"},
		"one that may run anywhere":      {data, db, host.Domain{}, away, false, "was migrated, as host a says"},
		"one below, which may run there": {data, over, host.Domain{}, away, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("a", c.here)
			w.set("b", c.there)
			m := w.master(c.master)
			m.All, m.Overlay = w.all(c.reasons), c.overlay
			err := m.AwaitQuiet(t.Context())
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
		})
	}
	w := newWorld()
	w.set("a", db)
	w.down = "b"
	m := w.master(data)
	if m.All = w.all(nil); m.AwaitQuiet(t.Context()) != nil {
		t.Error("a host that does not answer is in the way of a master that nobody took there")
	}
}
