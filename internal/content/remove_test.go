package content_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

func TestRemove(t *testing.T) {
	h, m := newHost(), &content.Creator{Owner: "renamed"} // a volume in state is recognized by its generation, not by the owner
	made := mustMake(t, h, clone("web"))
	h.volumes["rust/over"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "rust", Name: "over", Path: "/rust/over", Backing: made.Path}}
	err := m.Remove(t.Context(), "a", h, "ssd", "web", "qcow2", made.Generation)
	if !errors.Is(err, content.ErrBacking) || !strings.Contains(err.Error(), "rust/over") || h.volumes["ssd/web"] == nil {
		t.Errorf("below an overlay: %v, and the host has %v", err, h.volumes)
	}
	delete(h.volumes, "rust/over")
	for range 2 { // a second removal is no error
		if err := m.Remove(t.Context(), "a", h, "ssd", "web", "qcow2", made.Generation); err != nil || len(h.volumes)+len(h.domains) != 0 {
			t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
		}
	}
}

func TestRemove_TakenByAnotherOwnerCountsAsGone(t *testing.T) {
	for _, finished := range []bool{false, true} {
		h, m := newHost(), &content.Creator{Owner: "prod"}
		made := mustMake(t, h, clone("web"))
		if err := content.Forget(t.Context(), h, "ssd", "web", made.Generation); err != nil {
			t.Fatal(err)
		}
		delete(h.volumes, "ssd/web")
		if !finished {
			h.changes, h.failAt, h.dead, h.after = 0, 5, true, true
		}
		_, _ = (&content.Creator{Owner: "other"}).Make(t.Context(), "a", h, clone("web"), quiet)
		h.failAt, h.killed = 0, false
		for _, generation := range []string{made.Generation, ""} {
			if err := content.Forget(t.Context(), h, "ssd", "web", generation); !errors.Is(err, host.ErrNotFound) {
				t.Errorf("finished %t: %v", finished, err)
			}
			if err := m.Remove(t.Context(), "a", h, "ssd", "web", "qcow2", generation); err != nil {
				t.Errorf("finished %t: %v", finished, err)
			}
		}
		if len(h.volumes) != 1 || len(h.domains) != 1 {
			t.Errorf("finished %t: of the other's is left %v, %v", finished, h.volumes, h.domains)
		}
	}
}

// libvirt leaves the overlay of an ephemeral disk when it ends together with QEMU. It is removed while its domain is off.
func TestRemoveTransients(t *testing.T) {
	for name, c := range map[string]struct {
		backing string
		active  bool
		domain  string
		uuid    string
		want    bool
	}{
		"of a domain that is off":  {"/ssd/web", false, "vm", "", true},
		"of a domain that runs":    {"/ssd/web", true, "vm", "", false},
		"of a domain that is gone": {"/ssd/web", false, "other", "", true},
		"a volume of its name":     {"/ssd/else", false, "vm", "", false},
		"of the domain to start":   {"/ssd/web", false, "vm", "vm", true},
		"of another host's domain": {"/ssd/web", false, "other", "vm", false},
	} {
		h := newHost()
		mustMake(t, h, clone("web"))
		h.domains["vm"] = &fakeDomain{name: "vm", uuid: "vm", active: c.active}
		left := "web.TRANSIENT-" + c.domain
		h.volumes["ssd/"+left] = &fakeVolume{StorageVolume: host.StorageVolume{Type: "file", Pool: "ssd", Name: left, Path: "/ssd/" + left, Backing: c.backing}}
		removed, err := content.RemoveTransients(t.Context(), h, "/ssd/web", c.uuid)
		if err != nil || len(removed) > 0 != c.want || (h.volumes["ssd/"+left] == nil) != c.want {
			t.Errorf("%s: it removes %v, %v", name, removed, err)
		}
	}
}
