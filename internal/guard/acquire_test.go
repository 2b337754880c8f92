package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// world has hosts whose domains are defined, started and undefined.
type world struct {
	mu      sync.Mutex
	domains map[string][]host.Domain
	changed chan struct{}
	down    string
}

func newWorld() *world {
	return &world{domains: map[string][]host.Domain{}, changed: make(chan struct{})}
}

// set adds or changes a domain; without any definition it removes the domain.
func (w *world) set(key string, d host.Domain) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.domains[key] = slices.DeleteFunc(slices.Clone(w.domains[key]), func(o host.Domain) bool { return o.UUID == d.UUID })
	if d.Stored+d.Live != "" {
		w.domains[key] = append(w.domains[key], d)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) running() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, domains := range w.domains {
		for _, d := range domains {
			if d.Live != "" {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

func (w *world) host(key string) (guard.Waiter, error) { return place{w, key}, nil }

type place struct {
	world *world
	key   string
}

func (p place) Domains(context.Context) ([]host.Domain, error) {
	if p.world.down == p.key {
		return nil, errors.New("no route to host " + p.key)
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.world.domains[p.key], nil
}

func (p place) Pool(context.Context, string) (host.Pool, error) { return host.Pool{}, host.ErrNoPool }

func (p place) Volume(context.Context, string, string) (host.StorageVolume, error) {
	return host.StorageVolume{}, host.ErrNotFound
}

func (p place) Await(ctx context.Context, _ string, done func(context.Context) (bool, error)) error {
	for {
		p.world.mu.Lock()
		changed := p.world.changed
		p.world.mu.Unlock()
		if end, err := done(ctx); end || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func shared(mode volume.AccessMode, hosts ...string) volume.Image {
	return volume.Image{
		Type: "network", Format: "raw", Protocol: "nbd", Name: "data", Servers: []volume.Server{{Host: "storage"}},
		AccessMode: mode, Hosts: hosts,
	}
}

// user is a domain that has the image as its disk data.
func user(t *testing.T, name, id, owner, phase string, images ...volume.Image) host.Domain {
	t.Helper()
	text, err := domainxml.Build(domainxml.Machine{
		Name: name, UUID: id, VCPUs: 1, Memory: 1024, DomainType: "qemu", Metadata: domainxml.Metadata{Owner: owner, Phase: phase},
		Disks: map[string]domainxml.Disk{"data": {Volume: volume.Volume{Images: images}, Device: domainxml.Fixed, Bus: "virtio"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return host.Domain{Name: name, UUID: id, Stored: text}
}

func live(d host.Domain) host.Domain { d.Live = d.Stored; return d }

// saved is a domain whose managed save has a disk that its stored definition does not have any more.
func saved(d host.Domain) host.Domain { d.Saved, d.Stored = d.Stored, "<domain/>"; return d }

// next is a running domain with another stored definition.
func next(d, then host.Domain) host.Domain { d.Stored = then.Stored; return d }

const (
	low  = "00000000-0000-4000-8000-000000000001"
	mine = "50000000-0000-4000-8000-000000000000"
	high = "f0000000-0000-4000-8000-000000000000"
)

// of is an image from that binding.
func of(i volume.Image, binding string) volume.Image {
	i.Binding = binding
	return i
}

func TestAcquire(t *testing.T) {
	exclusive, reader, writers := shared(volume.WriteExclusive, "a", "b"), shared(volume.ReadShared, "a", "b"), shared(volume.WriteShared, "a", "b")
	local := image("/ssd/over", "o")
	theirs := func(device string) host.Domain {
		return host.Domain{Name: "theirs", UUID: high, Live: "<domain><name>theirs</name><devices><disk type='network' device='disk'>" +
			"<source protocol='nbd' name='data'><host name='storage' port='10809'/></source><target dev='vdb'/>" + device +
			"</disk></devices></domain>"}
	}
	for name, c := range map[string]struct {
		want   volume.Image
		other  host.Domain
		refuse string
	}{
		"nobody else":                                  {exclusive, host.Domain{}, ""},
		"many readers":                                 {reader, live(user(t, "db", high, "x", "ready", reader)), ""},
		"many readers through overlays":                {reader, live(user(t, "db", high, "x", "ready", local, reader)), ""},
		"many writers that share":                      {writers, live(user(t, "db", high, "x", "ready", writers)), ""},
		"a reader beside a sharing writer":             {reader, live(user(t, "db", high, "x", "ready", writers)), "db on host b runs with it as its disk data (write-shared)"},
		"a writer beside a reader":                     {exclusive, live(user(t, "db", high, "x", "ready", reader)), "(read-shared). Nothing but this stops two writers"},
		"a reader beside a writer":                     {reader, live(user(t, "db", high, "x", "ready", exclusive)), "(write-exclusive)"},
		"two writers":                                  {exclusive, live(user(t, "db", high, "x", "ready", exclusive)), "(the other is of the owner x)"},
		"overlays of an exclusive master":              {exclusive, live(user(t, "db", high, "x", "ready", local, exclusive)), "If so does this one, bind it read-shared"},
		"one that is saved with another disk":          {exclusive, saved(user(t, "db", low, "x", "ready", exclusive)), "db on host b was saved with it as its disk data (write-exclusive)"},
		"one that writes from its next start on":       {reader, next(live(user(t, "db", high, "x", "ready", reader)), user(t, "db", high, "x", "ready", exclusive)), "db on host b runs with it as its disk data (write-exclusive)"},
		"one that is off":                              {exclusive, user(t, "db", low, "x", "ready", exclusive), "db on host b has it as its disk data"},
		"one that is being created, with a lower UUID": {exclusive, user(t, "db", low, "x", "creating", exclusive), "just being created (the other is of the owner x)"},
		"an overlay of what is read-shared by now":     {reader, next(live(user(t, "db", high, "x", "ready", local, exclusive)), user(t, "db", high, "x", "ready", local, reader)), ""},
		"one that wrote to what is read-shared by now": {reader, next(live(user(t, "db", high, "x", "ready", exclusive)), user(t, "db", high, "x", "ready", local, reader)), "db on host b runs with it as its disk data (write-exclusive)"},
		"an overlay of what is exclusive by now":       {reader, next(live(user(t, "db", high, "x", "ready", local, reader)), user(t, "db", high, "x", "ready", local, exclusive)), "(write-exclusive)"},
		"a foreign writer":                             {reader, theirs(""), "virsh detach-disk theirs vdb --persistent"},
		"a foreign reader":                             {reader, theirs("<readonly/>"), ""},
		"a foreign writer that shares":                 {writers, theirs("<shareable/>"), ""},
		"a foreign reader beside a writer":             {exclusive, theirs("<readonly/>"), "That domain is not virtclaim's"},
		"a copy of its own definition":                 {reader, live(user(t, "web", mine, "me", "ready", exclusive)), "a copy of this machine's own definition"},
		"one of its owner in another state":            {of(exclusive, "id/1"), live(user(t, "db", high, "me", "ready", of(exclusive, "id/2"))), "another state has the owner \"me\", too"},
		"one of another owner and binding":             {of(exclusive, "id/1"), live(user(t, "db", high, "x", "ready", of(exclusive, "other/1"))), "(the other is of the owner x)"},
		"one that is being filled": {exclusive, live(filler(t, high, exclusive)), "domain virtclaim-fedcba9876543210 on host b fills it. Wait until " +
			"that is done; if it was interrupted, apply the configuration of that virtclaim_volume_content again"},
		"one whose filling was interrupted": {reader, filler(t, high, exclusive), "domain virtclaim-fedcba9876543210 on host b fills it. Wait"},
		"a clone of it":                     {exclusive, copier(t, high, exclusive), "A clone of it is being made there"},
		"another export":                    {exclusive, live(user(t, "db", high, "x", "ready", named(exclusive, "other"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.set("a", user(t, "web", mine, "me", "creating", c.want))
			w.set("b", c.other)
			err := acquire(t, guard.Request{
				Host: "a", Name: "web", UUID: mine, Owner: "me", Images: []volume.Image{c.want}, Hosts: w.host,
			})
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse) ||
				!strings.Contains(err.Error(), "machine web on host a can't use data")) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
		})
	}
}

// A file in a folder that hosts share is one file; without that, a path of another host is another file.
func TestAcquire_FileOfTwoHosts(t *testing.T) {
	file, private := image("/shared/root", ""), image("/shared/root", "")
	file.Hosts = []string{"a", "b"}
	copied := live(user(t, "db", high, "x", "ready", file))
	copied.Live = strings.ReplaceAll(copied.Live, `<source file="/shared/root"`, `<source file="/elsewhere"`)
	for name, c := range map[string]struct {
		want   volume.Image
		other  host.Domain
		refuse string
	}{
		"one that runs":                  {file, live(user(t, "db", high, "x", "ready", file)), "db on host b runs with it as its disk data"},
		"one that is off":                {file, user(t, "db", low, "x", "ready", file), "db on host b has it as its disk data"},
		"an overlay":                     {file, live(user(t, "db", high, "x", "ready", image("/ssd/over", "2"), file)), "a disk of its own over it"},
		"one that was moved to a copy":   {file, copied, "opens /elsewhere and not its volume /shared/root"},
		"a clone":                        {file, copier(t, high, file), "A clone of it is being made there"},
		"another file":                   {file, live(user(t, "db", high, "x", "ready", image("/shared/other", "2"))), ""},
		"another host's file":            {private, live(user(t, "db", high, "x", "ready", private)), ""},
		"another host's file, to a copy": {private, copied, ""},
	} {
		w := newWorld()
		w.set("a", user(t, "web", mine, "me", "creating", c.want))
		w.set("b", c.other)
		err := acquire(t, guard.Request{Host: "a", Name: "web", UUID: mine, Owner: "me", Images: []volume.Image{c.want}, Hosts: w.host})
		if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
			t.Errorf("%s: got %v, want %q", name, err, c.refuse)
		}
	}
}

func named(i volume.Image, name string) volume.Image { i.Name = name; return i }

func TestAcquire_WaitsFor(t *testing.T) {
	exclusive := of(shared(volume.WriteExclusive, "a", "b"), "id/1")
	for name, c := range map[string]struct{ before, after host.Domain }{
		"a machine of its owner that lets go":    {live(user(t, "db", low, "me", "ready", exclusive)), host.Domain{UUID: low}},
		"one of its former owner":                {live(user(t, "db", low, "former", "ready", exclusive)), host.Domain{UUID: low}},
		"one with a higher UUID that withdraws":  {user(t, "db", high, "x", "creating", exclusive), host.Domain{UUID: high}},
		"one from an instance that is not known": {live(user(t, "db", low, "me", "ready", of(exclusive, "id"))), host.Domain{UUID: low}},
		"one that runs and withdraws a disk":     {host.Domain{Name: "db", UUID: high, Live: "<domain/>", Stored: user(t, "db", high, "x", "ready", exclusive).Stored}, host.Domain{Name: "db", UUID: high, Live: "<domain/>", Stored: "<domain/>"}},
		"one of its owner that is off and loses": {user(t, "db", low, "me", "ready", exclusive), user(t, "db", low, "me", "ready", named(exclusive, "other"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.set("a", user(t, "web", mine, "me", "creating", exclusive))
				w.set("b", c.before)
				ended, waits := make(chan error, 1), false
				go func() {
					ended <- acquire(t, guard.Request{
						Host: "a", Name: "web", UUID: mine, Owner: "me", Images: []volume.Image{exclusive}, Hosts: w.host,
						Waits: func() { waits = true },
					})
				}()
				synctest.Wait()
				if !waits {
					t.Error("that it waits is not said")
				}
				select {
				case err := <-ended:
					t.Fatalf("it did not wait: %v", err)
				default:
				}
				w.set("b", c.after)
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What fills a volume waits for machines only while this apply may take it from them, and names all of them. It can't be bound for reading.
func TestAcquire_FillingWaitsWhileApplyReleases(t *testing.T) {
	exclusive, reader := shared(volume.WriteExclusive, "a", "b"), shared(volume.ReadShared, "a", "b")
	local := image("/ssd/over", "o")
	for name, c := range map[string]struct {
		others []host.Domain
		parts  []string
	}{
		"running":          {[]host.Domain{live(user(t, "db", low, "me", "ready", exclusive))}, []string{"db on host b runs with it"}},
		"off":              {[]host.Domain{user(t, "db", low, "me", "ready", exclusive)}, []string{"db on host b has it", "not even one that is off"}},
		"with an overlay":  {[]host.Domain{live(user(t, "db", low, "me", "ready", local, reader))}, []string{"db on host b runs with it"}},
		"of another owner": {[]host.Domain{live(user(t, "db", low, "x", "ready", local, reader))}, []string{"(the other is of the owner x)"}},
		"several that have it": {
			[]host.Domain{live(user(t, "db", low, "me", "ready", exclusive)), live(user(t, "web", high, "me", "ready", local, reader))},
			[]string{"db on host b runs with it", "All that have it: db on host b, web on host b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for _, d := range c.others {
					w.set("b", d)
				}
				began := time.Now()
				err := acquire(t, guard.Request{
					Host: "a", Name: "fill", UUID: mine, Owner: "me", Images: []volume.Image{exclusive}, Hosts: w.host,
					Releases: func() bool { return time.Since(began) < 10*time.Second },
				})
				if !errors.Is(err, guard.ErrInUse) || strings.Contains(err.Error(), "read-shared (") || time.Since(began) > 15*time.Second {
					t.Fatalf("after %s: %v", time.Since(began), err)
				}
				for _, part := range append(c.parts, "Take the disk away from it, or destroy it") {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in %v", part, err)
					}
				}
			})
		})
	}
}

// Two running machines of one owner, in two states, are published for the same storage. Neither releases it for the other, as in one apply:
// one of them yields, in time for the other one to see it.
func TestAcquire_DeadlockIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exclusive := shared(volume.WriteExclusive, "a", "b")
		w := newWorld()
		ends := map[string]chan error{}
		published := func(id string) host.Domain {
			return next(host.Domain{Name: id, UUID: id, Live: "<domain/>"}, user(t, id, id, "me", "ready", exclusive))
		}
		w.set("a", published(low))
		w.set("b", published(high))
		for key, id := range map[string]string{"a": low, "b": high} {
			ends[id] = make(chan error, 1)
			go func() {
				err := acquire(t, guard.Request{
					Host: key, Name: id, UUID: id, Owner: "me", Images: []volume.Image{exclusive}, Hosts: w.host,
				})
				if err != nil {
					w.set(key, next(published(id), host.Domain{Stored: "<domain/>"}))
				}
				ends[id] <- err
			}()
		}
		if err := <-ends[high]; !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "it was not released within 1m0s") {
			t.Errorf("the one that gives way was told %v", err)
		}
		if err := <-ends[low]; err != nil {
			t.Errorf("the one that stays was told %v", err)
		}
	})
}

func TestAcquire_OnlyExclusiveNeedsEveryHost(t *testing.T) {
	for mode, refused := range map[volume.AccessMode]bool{volume.WriteExclusive: true, volume.ReadShared: false, volume.WriteShared: false} {
		w := newWorld()
		w.down = "b"
		err := acquire(t, guard.Request{
			Host: "a", Name: "web", UUID: mine, Images: []volume.Image{shared(mode, "a", "b")}, Hosts: w.host,
		})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "is not known: no route to host b") {
			t.Errorf("%s: %v", mode, err)
		}
		w.down = "a"
		if err := acquire(t, guard.Request{
			Host: "a", Name: "web", UUID: mine, Images: []volume.Image{shared(mode, "a", "b")}, Hosts: w.host,
		}); err == nil {
			t.Errorf("%s: its own host did not answer, and it went on", mode)
		}
	}
}

// Machines of different owners on two hosts request the same storage concurrently: never two of them run, and one does at the end.
func TestAcquire_ContentionHasOneWinner(t *testing.T) {
	exclusive := shared(volume.WriteExclusive, "a", "b")
	for round := range 25 {
		w := newWorld()
		var group sync.WaitGroup
		for n := range 20 {
			key := []string{"a", "b"}[n%2]
			d := user(t, fmt.Sprintf("m%d", n), uuid.NewString(), fmt.Sprintf("o%d", n), domainxml.Creating, exclusive)
			group.Go(func() {
				for range rand.IntN(3) {
					_, _ = place{w, key}.Domains(t.Context()) // some come later
				}
				w.set(key, d)
				err := acquire(t, guard.Request{
					Host: key, Name: d.Name, UUID: d.UUID, Owner: d.Name, Images: []volume.Image{exclusive}, Hosts: w.host,
				})
				if err != nil {
					w.set(key, host.Domain{UUID: d.UUID})
					return
				}
				w.set(key, live(d))
				if running := w.running(); len(running) > 1 {
					t.Errorf("round %d: %v run at once", round, running)
				}
			})
		}
		group.Wait()
		if running := w.running(); len(running) != 1 {
			t.Fatalf("round %d: %v run", round, running)
		}
	}
}

// The record of a disk that moves here keeps all machines from it but the one that comes from where the disk is.
func TestAcquire_DiskThatMoves(t *testing.T) {
	top := volume.Image{
		Type: "file", Format: "qcow2", Name: "/ssd/root", Generation: "1", AccessMode: volume.WriteExclusive, Hosts: []string{"host-b"},
	}
	text, err := domainxml.BuildJournal(domainxml.Journal{
		Name: "virtclaim-0123456789abcdef", UUID: uuid.NewString(),
		Note: domainxml.Note{Pool: "ssd", Volume: "root", Generation: "1", From: "host-a", FromPool: "ssd"},
		Copy: &volume.Volume{Images: []volume.Image{top}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.set("host-b", host.Domain{Name: "virtclaim-0123456789abcdef", UUID: uuid.NewString(), Stored: text})
	for from, refused := range map[string]bool{"host-a": false, "host-c": true, "": true} {
		_, err := guard.Acquire(t.Context(), guard.Request{
			Host: "host-b", From: from, Name: "web", UUID: uuid.NewString(), Images: []volume.Image{top}, Hosts: w.host,
		})
		if errors.Is(err, guard.ErrMoves) != refused || (err != nil) != refused {
			t.Errorf("from %q: %v", from, err)
		}
	}
}
