package content_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// removable is the error of content.Removable for a volume of the pool ssd.
func removable(t *testing.T, h *fakeHost, name, format, generation string) error {
	t.Helper()
	_, err := content.Removable(t.Context(), h, h.definitions(t), "ssd", name, format, generation)
	return err
}

func (h *fakeHost) definitions(t *testing.T) (all []domainxml.Definitions) {
	t.Helper()
	listed, err := h.Domains(t.Context())
	for _, d := range listed {
		var read domainxml.Definitions
		if err == nil {
			read, err = domainxml.ReadDefinitions(d.Name, d.UUID, d.Live, d.Saved, d.Stored)
		}
		all = append(all, read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// recognize is the error of content.Recognize for a volume.
func recognize(t *testing.T, h *fakeHost, v host.StorageVolume, format, id string) error {
	t.Helper()
	is, err := content.See(t.Context(), h, v, format)
	if err == nil {
		err = content.Recognize(is, format, id)
	}
	return err
}

// recognizeChain is the error of a chain that is about to be opened.
func recognizeChain(t *testing.T, h *fakeHost, chain ...volume.Image) error {
	t.Helper()
	seen, err := content.InspectChain(t.Context(), h, chain)
	if err == nil {
		err = content.RecognizeChain(t.Context(), h, chain, seen)
	}
	return err
}

func TestRemove(t *testing.T) {
	h, m := newHost(), &content.Creator{Owner: "renamed"} // a volume in state is recognized by its generation, not by the owner
	made := mustMake(t, h, clone("web"))
	h.volumes["rust/over"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "rust", Name: "over", Path: "/rust/over", Backing: made.Path}}
	err := removable(t, h, "web", "qcow2", made.Generation)
	if !errors.Is(err, content.ErrBacking) || !strings.Contains(err.Error(), "rust/over") || h.volumes["ssd/web"] == nil {
		t.Errorf("below an overlay: %v, and the host has %v", err, h.volumes)
	}
	delete(h.volumes, "rust/over")
	for range 2 { // a second removal is no error
		if err := m.Remove(t.Context(), "a", h, "ssd", "web", made.Generation); err != nil || len(h.volumes)+len(h.domains) != 0 {
			t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
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
		removed, err := content.RemoveTransients(t.Context(), h, "ssd", "/ssd/web", c.uuid)
		if err != nil || len(removed) > 0 != c.want || (h.volumes["ssd/"+left] == nil) != c.want {
			t.Errorf("%s: it removes %v, %v", name, removed, err)
		}
	}
}

// The disk of another domain that is in no storage pool counts by the name of its file alone: it is never looked into.
func TestRemovable_DisksOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   error
	}{
		"by a link":                       {"/link/ssd/master", content.ErrLinked},
		"another name":                    {"/out/o", nil},
		"another volume of the same name": {"/rust/master", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			master := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
			h.volumes["rust/master"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "rust", Name: "master", Path: "/rust/master", Type: "file", Modified: "1"}}
			h.domains["web"] = opener(opens("file='"+c.source+"'", "qcow2"))
			if err := removable(t, h, "master", "qcow2", master.Generation); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCheckStarts(t *testing.T) {
	domain := func(file string) *domainxml.Domain {
		text, err := domainxml.Build(domainxml.Machine{
			Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Boot: &domainxml.Boot{Kernel: "/vmlinuz"},
			FWCfg: map[string]string{"opt/a": file},
		})
		d, failed := domainxml.Read(text)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		return d
	}
	has, other := domain("/pool/a"), domain("/pool/b")
	for name, c := range map[string]struct {
		is      domainxml.Definitions
		refused bool
	}{
		"stored":                            {domainxml.Definitions{Name: "web", Stored: has}, true},
		"runs with it":                      {domainxml.Definitions{Name: "web", Stored: other, Live: has}, true},
		"is saved with it":                  {domainxml.Definitions{Name: "web", Stored: other, Saved: has}, true},
		"runs without a definition":         {domainxml.Definitions{Name: "web", Live: has}, true},
		"is off with another one":           {domainxml.Definitions{Name: "web", Stored: other}, false},
		"runs without it, and will have it": {domainxml.Definitions{Name: "web", Stored: has, Live: other}, true},
	} {
		err := content.CheckStarts([]domainxml.Definitions{c.is}, "/pool/a")
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	kernel := []domainxml.Definitions{{Name: "web", Stored: has}}
	if content.CheckStarts(kernel, "/initrd", "/vmlinuz") == nil || content.CheckStarts(kernel, "/another") != nil {
		t.Error("a kernel of a machine may be removed, or another one not")
	}
}
