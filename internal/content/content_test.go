package content_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func quiet(host.Progress) {}

func size(n int64) *int64 { return &n }

func master() volume.Volume {
	return volume.Volume{Capacity: size(1 << 20), Images: []volume.Image{{
		Type: "network", Protocol: "iscsi", Format: "raw", Name: "iqn.2025-01.io.example:a/1", AccessMode: volume.ReadShared,
	}}}
}

func clone(name string) content.Spec {
	return content.Spec{Pool: "ssd", Name: name, Mode: volume.Clone, Format: "qcow2", Capacity: 1 << 20, Master: master()}
}

// mustMake creates a volume with a Creator of its own, as the next apply would.
func mustMake(t *testing.T, h *fakeHost, s content.Spec) content.Created {
	t.Helper()
	h.failAt, h.killed = 0, false
	made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, s, quiet)
	if err != nil {
		t.Fatal(err)
	}
	v := h.volumes[made.Pool+"/"+made.Name]
	if v == nil || s.Mode == volume.Clone && !v.whole || s.Content != nil && v.content == nil {
		t.Fatalf("it is not whole: %+v", v)
	}
	if s.Base != nil {
		if base := h.volumes[made.Pool+"/"+path.Base(v.Backing)]; base == nil || base.content == nil {
			t.Fatalf("it is over %+v", base)
		}
	}
	return made
}

// onlyHas fails the test if the host has anything but that volume.
func onlyHas(t *testing.T, h *fakeHost, made content.Created) {
	t.Helper()
	v, below := h.volumes[made.Pool+"/"+made.Name], len(chainOf(h, made.Name))
	if len(h.domains) != 0 || len(h.volumes) != 1+below || v == nil || len(h.secrets) > max(1, below) {
		t.Errorf("left on the host: %v, %v, %v", h.domains, h.volumes, h.secrets)
	}
}

// Each change fails once, or is the last one of a killed process; after the failure, or after the next creation, the host is consistent.
func TestMake_FailureAtEachCall(t *testing.T) {
	specs := map[string]content.Spec{
		"clone": clone("web"), "clone with a made up name": {
			Pool: "ssd", Prefix: "web-", Mode: volume.Clone, Format: "qcow2", Capacity: 1 << 20, Master: master(),
		},
		"blank":                  {Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20},
		"raw image":              {Pool: "ssd", Name: "web", Content: bytesOf(make([]byte, 100<<10)), Capacity: 1 << 20},
		"qcow2 image that grows": {Pool: "ssd", Name: "web", Content: bytesOf(qcow2(1 << 20)), Capacity: 1 << 21},
		"over layers":            layered(t, "web", "base", "python"),
		"over a shared image":    {Pool: "ssd", Name: "web", Base: bytesOf(qcow2(1 << 20)), Format: "qcow2"},
	}
	for name, spec := range specs {
		for n := 1; ; n++ {
			reached := false
			for _, dead := range []bool{false, true} {
				for _, after := range []bool{false, true} {
					h := newHost()
					h.failAt, h.dead, h.after = n, dead, after
					_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
					if h.changes < n {
						continue
					}
					reached = true
					what := fmt.Sprintf("%s, change %d, dead %t, after %t", name, n, dead, after)
					// A failure to release a lock is ignored, and the last call is repeated.
					if err != nil && !errors.Is(err, errBroken) {
						t.Errorf("%s: %v", what, err)
					}
					if !dead && err != nil && len(h.volumes)+len(h.domains) != 0 {
						t.Errorf("%s: left are %v, %v", what, h.volumes, h.domains)
					}
					if err == nil {
						continue
					}
					if h.failAt, h.killed = 0, false; dead && isFinished(h) { // it may be in another state, so it stays
						_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
						if spec.Prefix == "" && (!errors.Is(err, content.ErrTaken) || !strings.Contains(err.Error(), "terraform import")) {
							t.Errorf("%s: %v", what, err)
						}
						continue
					}
					onlyHas(t, h, mustMake(t, h, spec))
				}
			}
			if !reached {
				break
			}
		}
	}
}

func TestMake_PartialCopyIsNoClone(t *testing.T) {
	h := newHost()
	h.torn = true
	_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	if err == nil || !strings.Contains(err.Error(), "the copy broke off") || len(h.volumes)+len(h.domains) != 0 {
		t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
	}
}

// A writer of the master sees the journal: it is published before writers are checked, and removed after the second check.
func TestMake_CloneIsCheckedBeforeAndAfterCopy(t *testing.T) {
	writes := errors.New("a machine writes to it")
	for refusedAt := range 3 { // never, at the first check, at the second
		h, asked := newHost(), 0
		spec := clone("web")
		spec.Precheck = func(context.Context) error {
			if asked++; asked == refusedAt {
				return writes
			}
			for _, d := range h.domains {
				if !strings.Contains(d.xml, "iqn.2025-01.io.example:a/1") {
					t.Errorf("asked for the time %d, the host has the journal %s", asked, d.xml)
				}
			}
			if v := h.volumes["ssd/web"]; len(h.domains) != 1 || v == nil || v.whole != (asked == 2) {
				t.Errorf("asked for the time %d, the host has %v, %+v", asked, h.domains, v)
			}
			return nil
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if refusedAt == 0 {
			if err != nil || asked != 2 {
				t.Errorf("got %v, asked %d times", err, asked)
			}
			continue
		}
		if !errors.Is(err, writes) || asked != refusedAt || len(h.domains)+len(h.volumes) != 0 {
			t.Errorf("refused at the time %d: %v, and the host has %v, %v", refusedAt, err, h.domains, h.volumes)
		}
	}
}

// An overlay is checked for writers of its master once its header references it, so that they can see it; if refused, it is removed.
func TestMake_OverlayAsksForWriters(t *testing.T) {
	writes := errors.New("a machine writes to it")
	for _, refused := range []error{nil, writes} {
		h, asked := newHost(), 0
		spec := clone("web")
		spec.Mode = volume.CopyOnWrite
		spec.Precheck = func(context.Context) error {
			if asked++; h.volumes["ssd/web"] == nil {
				t.Error("it asked before it could be seen")
			}
			return refused
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if !errors.Is(err, refused) || asked != 1 || refused != nil && len(h.domains)+len(h.volumes) != 0 {
			t.Errorf("got %v, asked %d times, and the host has %v, %v", err, asked, h.domains, h.volumes)
		}
	}
}

func TestMake_LeavesOtherCreatorInProgress(t *testing.T) {
	h := newHost()
	h.failAt, h.dead, h.after = 5, true, true
	_, _ = (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	h.failAt, h.killed = 0, false
	h.waited = func() {
		for _, d := range h.domains {
			other := "5f0c6f1e-58f5-5c80-9b57-0d3a2f6f8a11"
			d.xml, d.uuid = strings.ReplaceAll(d.xml, d.uuid, other), other
		}
	}
	_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	if !errors.Is(err, content.ErrForeign) || len(h.domains) != 1 || len(h.volumes) != 1 {
		t.Errorf("got %v, and the host has %v, %v", err, h.domains, h.volumes)
	}
}

// isFinished reports whether a host has a volume without a journal, which is no shared image.
func isFinished(h *fakeHost) bool {
	finished := false
	for _, v := range h.volumes {
		finished = finished || !content.IsBase(v.Path)
	}
	return finished && len(h.domains) == 0
}

// A creation that two applies of one owner make is finished by one of them only: the other one gets an error, and the volume stays.
func TestMake_FinishedWhileWaitedFor(t *testing.T) {
	h := newHost()
	h.failAt, h.dead, h.after = 5, true, true // the copy has begun
	_, _ = (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	if len(h.domains) != 1 || len(h.volumes) != 1 {
		t.Fatalf("the host has %v, %v", h.domains, h.volumes)
	}
	h.failAt, h.killed = 0, false
	h.waited = func() { clear(h.domains) }
	before := h.volumes["ssd/web"]
	for range 2 {
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
		if !errors.Is(err, content.ErrTaken) || !strings.Contains(err.Error(), "terraform import") || h.volumes["ssd/web"] != before {
			t.Errorf("got %v, and the host has %v", err, h.volumes)
		}
	}
}

func TestCheckImport(t *testing.T) {
	h := newHost()
	h.failAt, h.dead, h.after = 5, true, true
	_, _ = (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	h.failAt, h.killed = 0, false
	if err := content.CheckImport(t.Context(), h, "ssd", "web"); err == nil || !strings.Contains(err.Error(), "is incomplete") || len(h.domains) != 1 {
		t.Errorf("an incomplete volume: %v, and the host has %v", err, h.domains)
	}
	mustMake(t, h, clone("web"))
	if err := content.CheckImport(t.Context(), h, "ssd", "web"); err != nil || len(h.domains) != 0 {
		t.Errorf("a whole one: %v, and the host has %v", err, h.domains)
	}
}

func TestMake_SamePrefixGivesTwoNames(t *testing.T) {
	h, m := newHost(), &content.Creator{Owner: "prod"}
	spec := content.Spec{Pool: "ssd", Prefix: "web-", Format: "qcow2", Capacity: 1 << 20}
	one, err := m.Make(t.Context(), "a", h, spec, quiet)
	if err != nil {
		t.Fatal(err)
	}
	two, err := m.Make(t.Context(), "a", h, spec, quiet)
	if err != nil || one.Name == two.Name || !strings.HasPrefix(two.Name, "web-") {
		t.Errorf("got %+v and %+v, %v", one, two, err)
	}
}

func TestMake_ForeignVolumesStay(t *testing.T) {
	theirs := &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web"}}
	for _, when := range []string{"before", "meanwhile"} {
		h := newHost()
		put := func() { h.volumes["ssd/web"] = theirs }
		if when == "before" {
			put()
		} else {
			h.meanwhile = put
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
		if !errors.Is(err, content.ErrForeign) && !errors.Is(err, host.ErrExists) {
			t.Errorf("%s: %v", when, err)
		}
		if h.volumes["ssd/web"] != theirs || len(h.domains) != 0 {
			t.Errorf("%s: the host has %v, %v", when, h.volumes, h.domains)
		}
	}
}

func TestMake_CloneNeedsRoom(t *testing.T) {
	h := newHost()
	h.free = 1<<20 - 1
	_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
	if err == nil || !strings.Contains(err.Error(), "1048575 bytes left") || len(h.volumes)+len(h.domains) != 0 {
		t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
	}
}

// annotated returns the usage types of a host whose node has that folder in its annotation.
func annotated(folder string) content.UsageTypes {
	return content.UsageTypes{Host: "a", Annotations: func(context.Context) (map[string]string, error) {
		return map[string]string{"kubevirt.io/storage.usage-type.x": folder}, nil
	}}
}

func TestUsageTypes(t *testing.T) {
	named := content.UsageTypes{Host: "a", Pools: map[string]string{"fast": "ssd", "slow": "rust"}}
	if pool, err := named.Pool(t.Context(), nil, "fast"); err != nil || pool != "ssd" {
		t.Errorf("got %s, %v", pool, err)
	}
	for _, c := range []struct {
		u    content.UsageTypes
		want string
	}{
		{named, `host a has no usage type "x"; it has fast, slow, in the storage of its configuration`},
		{content.UsageTypes{Host: "a"}, `host a has no usage types: add storage = { x = `},
		{annotated("images"), `is "images", which must be an absolute path`},
		{annotated("/srv/../etc"), `is "/srv/../etc", which must be an absolute path`},
	} {
		if err := c.u.Check(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func giveIdentity(t *testing.T, head []byte, id string) []byte {
	t.Helper()
	head, err := image.WithIdentity(head, id)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// A master that was replaced by a symbolic link after it was bound is not copied.
func TestMake_RefusesToCloneALink(t *testing.T) {
	for _, mode := range []volume.CopyMode{volume.Clone, volume.CopyOnWrite} {
		spec := clone("web")
		spec.Mode = mode
		spec.Master.Images = []volume.Image{{Type: "file", Format: "raw", Name: "/claim/disk.img", AccessMode: volume.ReadShared, Binding: "b"}}
		h := newHost()
		if _, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet); !errors.Is(err, host.ErrNotRegular) {
			t.Error(mode, err)
		}
		if len(h.volumes) > 0 || len(h.domains) > 0 {
			t.Errorf("left are %v, %v", h.volumes, h.domains)
		}
		h.volumes["/claim/disk.img"] = &fakeVolume{StorageVolume: host.StorageVolume{Type: "file"}}
		mustMake(t, h, spec)
	}
}

// A volume that another tool has created under the name of a partial one is left alone while a foreign domain uses it.
func TestMake_KeepsAVolumeThatOthersUse(t *testing.T) {
	for name, c := range map[string]struct {
		domain  string
		refused bool
	}{
		"no domain": {"", false}, "a domain of others": {"web", true}, "one that measures": {host.MeasurePrefix + "1", false},
	} {
		h := newHost()
		h.failAt, h.dead, h.after = 2, true, true // the volume is created, and nothing more
		_, _ = (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
		h.failAt, h.killed = 0, false
		before := h.volumes["ssd/web"]
		if before == nil {
			t.Fatal("there is no volume")
		}
		if c.domain != "" {
			h.domains[c.domain] = opener(opens("file='/ssd/web'", "raw"))
			h.domains[c.domain].name, h.domains[c.domain].active = c.domain, true
			h.domains[c.domain].transient = strings.HasPrefix(c.domain, host.MeasurePrefix)
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
		if errors.Is(err, content.ErrForeign) != c.refused || (h.volumes["ssd/web"] == before) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A complete volume that is not what it must be is removed, also an upload with its journal.
func TestMake_Confirm(t *testing.T) {
	for name, spec := range map[string]content.Spec{
		"clone": clone("web"), "blank": {Pool: "ssd", Name: "web", Format: "qcow2", Capacity: 1 << 20},
		"image": {Pool: "ssd", Name: "web", Content: bytesOf(qcow2(1 << 20)), Format: "qcow2", Capacity: 1 << 20},
	} {
		h, refused, seen := newHost(), errors.New("not seen"), ""
		spec.Confirm = func(_ context.Context, v host.StorageVolume, generation string) error {
			if seen = generation; v.Name != "web" || v.Path == "" || len(h.domains) != 1 {
				t.Errorf("%s: %+v, and %d journals", name, v, len(h.domains))
			}
			return refused
		}
		if _, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet); !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
		if len(h.volumes)+len(h.domains)+len(h.secrets) != 0 {
			t.Errorf("%s: left are %v, %v, %v", name, h.volumes, h.domains, h.secrets)
		}
		refused = nil
		if made := mustMake(t, h, spec); made.Generation != seen {
			t.Errorf("%s: %s was confirmed, and %s made", name, seen, made.Generation)
		}
	}
}
