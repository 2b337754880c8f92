package content_test

import (
	"context"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Two pools of a host have an image each of the same name. The disks of one don't keep the other's, nor does a domain that runs there.
func TestCollectGarbage_SameImageInTwoPools(t *testing.T) {
	h, maker, image := newHost(), &content.Creator{Owner: "prod"}, bytesOf(qcow2(1<<20))
	var made []content.Created
	for _, pool := range []string{"ssd", "hdd"} {
		spec := over("web", image)
		spec.Pool = pool
		made = append(made, mustMake(t, h, spec))
		h.volumes[pool+"/"+path.Base(h.volumes[pool+"/web"].Backing)].Modified = pool
	}
	name := path.Base(h.volumes["ssd/web"].Backing)
	h.domains["web"] = &fakeDomain{name: "web", uuid: "1", xml: "<domain><name>web</name><devices><disk><driver type='qcow2'/><source file='/hdd/web'/>" +
		"<backingStore type='file'><format type='qcow2'/><source file='/hdd/" + name + "'/><backingStore/></backingStore><target dev='vda'/></disk></devices></domain>"}
	for n, pool := range []string{"ssd", "hdd"} {
		err := maker.Remove(t.Context(), "a", h, pool, "web", made[n].Generation)
		if err == nil {
			err = maker.CollectGarbage(t.Context(), "a", h, pool, name)
		}
		if isLeft := h.volumes[pool+"/"+name] != nil; err != nil || isLeft != (pool == "hdd") {
			t.Fatalf("%s: %v, and the host has %v", pool, err, h.volumes)
		}
	}
	delete(h.domains, "web")
	if err := maker.CollectGarbage(t.Context(), "a", h, "hdd", name); err != nil || len(h.volumes)+len(h.secrets) != 0 {
		t.Errorf("%v, and the host has %v, %v", err, h.volumes, h.secrets)
	}
}

// What may be the same file by another path keeps it: one that is in no pool, and one that can't be told apart.
func TestCollectGarbage_OtherPathOfTheImage(t *testing.T) {
	for what, there := range map[string]*fakeVolume{
		"in no pool":    nil,
		"the same file": {StorageVolume: host.StorageVolume{Pool: "link", Modified: "now"}},
	} {
		h, maker := newHost(), &content.Creator{Owner: "prod"}
		made := mustMake(t, h, over("web", bytesOf(qcow2(1<<20))))
		base := h.volumes["ssd/"+path.Base(h.volumes["ssd/web"].Backing)]
		base.Modified = "now"
		at := "/link/" + base.Name
		if there != nil {
			there.Name, there.Path, there.Physical = base.Name, at, base.Physical
			h.volumes["link/"+base.Name] = there
		}
		h.volumes["other/db"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "other", Name: "db", Path: "/other/db", Backing: at}}
		err := maker.Remove(t.Context(), "a", h, "ssd", "web", made.Generation)
		if err == nil {
			err = maker.CollectGarbage(t.Context(), "a", h, "ssd", base.Name)
		}
		if err != nil || h.volumes["ssd/"+base.Name] == nil {
			t.Errorf("%s: %v, and the host has %v", what, err, h.volumes)
		}
	}
}

// poolsAt is a host whose pools have other folders than their names.
type poolsAt struct {
	*fakeHost
	of map[string]string
}

func (h poolsAt) Pool(_ context.Context, name string) (host.Pool, error) {
	if h.of[name] == "" {
		return host.Pool{}, host.ErrNotFound
	}
	return host.Pool{Type: "dir", Path: h.of[name]}, nil
}

// A creation keeps the images of its pool, and of a pool over the same folder, also when its creator is dead and the domain was left running.
func TestCollectGarbage_JournalOfAnotherPool(t *testing.T) {
	for what, c := range map[string]struct {
		pool  string
		of    map[string]string
		keeps bool
	}{
		"its own pool":             {"ssd", nil, true},
		"another pool":             {"hdd", map[string]string{"hdd": "/hdd"}, false},
		"a pool over the folder":   {"second", map[string]string{"second": "/ssd/"}, true},
		"a pool that is not there": {"gone", nil, false},
	} {
		h, maker := newHost(), &content.Creator{Owner: "prod"}
		made := mustMake(t, h, over("web", bytesOf(qcow2(1<<20))))
		name := path.Base(h.volumes["ssd/web"].Backing)
		left := mustJournal(t, c.pool, name)
		h.domains[left.name] = left
		err := maker.Remove(t.Context(), "a", h, "ssd", "web", made.Generation)
		if err == nil {
			err = maker.CollectGarbage(t.Context(), "a", poolsAt{h, c.of}, "ssd", name)
		}
		if isLeft := h.volumes["ssd/"+name] != nil; err != nil || isLeft != c.keeps {
			t.Errorf("%s: %v, and the host has %v", what, err, h.volumes)
		}
	}
}

// mustJournal is what a process that died with libvirtd has left of a disk over that image.
func mustJournal(t *testing.T, pool, base string) *fakeDomain {
	t.Helper()
	h := newHost()
	spec := layered(t, "left", "base", "python")
	spec.Pool = pool
	open := spec.Layers[1].Open
	var left *fakeDomain
	spec.Layers[1].Open = func(ctx context.Context) (io.ReadCloser, error) {
		for _, d := range h.domains {
			if d.active && strings.Contains(d.xml, "left") && left == nil {
				copied := *d
				left = &copied
				names := strings.Split(d.xml, content.BasePrefix)
				if len(names) > 1 {
					left.xml = strings.ReplaceAll(d.xml, content.BasePrefix+names[1][:64], base)
				}
			}
		}
		return open(ctx)
	}
	if mustMake(t, h, spec); left == nil {
		t.Fatal("there was no journal")
	}
	left.live = ""
	return left
}
