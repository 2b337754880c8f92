package content_test

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// rewrite has a newer provider write a record of a host.
func rewrite(h *fakeHost, usage string) {
	s := h.secrets[usage]
	s.Description += " (version 2)"
	h.secrets[usage] = s
}

// What an interrupted creation of a newer provider has left is neither taken over nor removed. Another volume gets another name.
func TestMake_JournalOfNewerProviderStays(t *testing.T) {
	for _, named := range []bool{true, false} {
		h, spec := newHost(), clone("web")
		if !named {
			spec.Name, spec.Prefix = "", "web-"
		}
		h.failAt, h.dead, h.after = 5, true, true
		_, _ = (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		h.failAt, h.killed = 0, false
		name := slices.Collect(maps.Keys(h.domains))[0]
		journal, left := h.domains[name], slices.Collect(maps.Keys(h.volumes))[0]
		journal.active = false
		journal.xml = strings.ReplaceAll(journal.xml, "libvirt/domain/1", "libvirt/domain/2")
		text := journal.xml
		made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if named && (!errors.Is(err, newer.Err) || !strings.Contains(err.Error(), name)) || !named && (err != nil || made.Name == path.Base(left)) {
			t.Errorf("named %v: %+v, %v", named, made, err)
		}
		if h.domains[name] != journal || journal.xml != text || h.volumes[left] == nil {
			t.Errorf("named %v: the host has %v, %v", named, h.domains, h.volumes)
		}
	}
}

// A shared image, or what its interrupted creation has left, stays if a newer provider has written its record.
func TestCollectGarbage_NewerProvider(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	made := mustMake(t, h, over("web", bytesOf(qcow2(1<<20))))
	base := path.Base(h.volumes["ssd/web"].Backing)
	usage := "virtclaim base ssd/" + base
	rewrite(h, usage)
	record := h.secrets[usage]
	if err := maker.Remove(t.Context(), "a", h, "ssd", "web", made.Generation); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{base: newer.Err, content.BasePrefix + strings.Repeat("1", 64): nil} {
		err := maker.CollectGarbage(t.Context(), "a", h, "ssd", name)
		if !errors.Is(err, want) || h.volumes["ssd/"+base] == nil || h.secrets[usage] != record {
			t.Errorf("%s: %v, and the host has %v, %v", name, err, h.volumes, h.secrets)
		}
	}
	if _, err := maker.Make(t.Context(), "a", h, over("next", bytesOf(qcow2(1<<20))), quiet); !errors.Is(err, newer.Err) || h.secrets[usage] != record {
		t.Errorf("a disk over it: %v, and the host has %v", err, h.secrets)
	}
}

// An identity that a newer provider has noted is not missing: the volume is not given another one, nor removed.
func TestSee_NewerProvider(t *testing.T) {
	h := newHost()
	made := mustMake(t, h, content.Spec{Pool: "ssd", Name: "raw", Format: "raw", Capacity: 1 << 20})
	const usage = "virtclaim ssd/raw"
	rewrite(h, usage)
	entry := h.secrets[usage]
	v := h.volumes["ssd/raw"].StorageVolume
	_, see := content.See(t.Context(), h, v, "raw")
	_, adopt := content.Adopt(t.Context(), h, v, "raw")
	_, remove := content.Removable(t.Context(), h, nil, "ssd", "raw", "raw", made.Generation)
	grow := content.NoteGrowth(t.Context(), h, v, volume.Image{Type: "file", Format: "raw", Generation: made.Generation}, 2<<20)
	for name, err := range map[string]error{"see": see, "adopt": adopt, "remove": remove, "grow": grow} {
		if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), "volume raw in the storage pool ssd") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h.secrets[usage] != entry || len(h.secrets) != 1 {
		t.Errorf("the host has %v", h.secrets)
	}
}

// An overlay is not opened over a master whose record a newer provider has written.
func TestCheckMasterRecords_NewerProvider(t *testing.T) {
	h := newHost()
	made := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
	h.volumes["ssd/master"].Modified = "100"
	chain := []volume.Image{
		{Type: "file", Name: "/ssd/over", Generation: "11111111-1111-4111-8111-111111111111"},
		{Type: "file", Name: "/ssd/master", Format: "qcow2", Generation: made.Generation},
	}
	if err := content.CheckMasterRecords(t.Context(), h, chain); err != nil {
		t.Fatal(err)
	}
	usage := "virtclaim master of " + chain[0].Generation
	rewrite(h, usage)
	record := h.secrets[usage]
	for name, err := range map[string]error{
		"apply": content.CheckMasterRecords(t.Context(), h, chain), "plan": content.CheckMasters(t.Context(), h, chain),
	} {
		if !errors.Is(err, newer.Err) || errors.Is(err, host.ErrNotFound) || h.secrets[usage] != record {
			t.Errorf("%s: %v, and the host has %v", name, err, h.secrets)
		}
	}
}
