package content_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// interruptedLayer is a host on which the creation of the disk "a" was killed while its second layer was uploaded: the journals of the disk
// and of that layer, and the name of the layer's image.
func interruptedLayer(t *testing.T) (h *fakeHost, disk, layer *fakeDomain, name string) {
	t.Helper()
	h = newHost()
	spec := layered(t, "a", "base", "python")
	open := spec.Layers[1].Open
	spec.Layers[1].Open = func(ctx context.Context) (io.ReadCloser, error) {
		for _, d := range h.domains {
			note, is, err := domainxml.ParseJournal(d.xml)
			if err != nil || !is || note.Creator == "" {
				continue
			}
			disk, _ = h.byUUID(note.Creator)
			layer, name = d, note.Volume
			if d.active || disk == nil || !disk.active || !disk.held {
				t.Errorf("the layer is being made in the domain %+v of %+v", d, disk)
			}
		}
		h.killed = true
		h.disconnect()
		return open(ctx)
	}
	if _, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet); err == nil || layer == nil || disk == nil {
		t.Fatalf("%v, and the host has %v", err, h.domains)
	}
	h.killed = false
	if v := h.volumes["ssd/"+name]; v == nil || v.content != nil {
		t.Fatalf("the layer is %+v", v)
	}
	return h, disk, layer, name
}

// What a dead creator has left of a layer goes with the disk, and without its creator's domain as well.
func TestCollectGarbage_LayerOfADeadCreator(t *testing.T) {
	for what, kill := range map[string]func(h *fakeHost, disk *fakeDomain){
		"its domain is off":  func(*fakeHost, *fakeDomain) {},
		"its domain is gone": func(h *fakeHost, disk *fakeDomain) { delete(h.domains, disk.name) },
	} {
		h, disk, layer, name := interruptedLayer(t)
		kill(h, disk)
		if err := (&content.Creator{}).CollectGarbage(t.Context(), "a", h, "ssd", name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if h.volumes["ssd/"+name] != nil || h.domains[layer.name] != nil {
			t.Errorf("%s: the host has %v, %v", what, h.volumes, h.domains)
		}
	}
}

func TestCollectGarbage_LayerOfALivingCreator(t *testing.T) {
	h, disk, layer, name := interruptedLayer(t)
	disk.active = true
	if err := (&content.Creator{}).CollectGarbage(t.Context(), "a", h, "ssd", name); err != nil {
		t.Error(err)
	}
	if h.volumes["ssd/"+name] == nil || h.domains[layer.name] == nil || !disk.active {
		t.Errorf("the host has %v, %v", h.volumes, h.domains)
	}
}

// Another process makes a layer that this one needs, and goes on with others: it is waited for until the layer is complete.
func TestMake_LayerOfAnotherProcess(t *testing.T) {
	whole := newHost()
	mustMake(t, whole, layered(t, "a", "base", "python"))
	h, disk, layer, name := interruptedLayer(t)
	disk.active = true
	uploads := h.uploads
	h.waited = func() {
		h.volumes["ssd/"+name] = whole.volumes["ssd/"+name]
		delete(h.domains, layer.name)
		h.waited = nil
	}
	if _, err := (&content.Creator{Owner: "other"}).Make(t.Context(), "a", h, layered(t, "b", "base", "python"), quiet); err != nil {
		t.Fatal(err)
	}
	if h.waited != nil || h.uploads != uploads || !disk.active || len(chainOf(h, "b")) != 2 {
		t.Errorf("after %d uploads the host has %v, and %+v", h.uploads-uploads, h.volumes, disk)
	}
}

// A creator that dies without a trace, as after a crash of libvirtd, is ended by who wants the layer.
func TestMake_LayerOfASilentCreator(t *testing.T) {
	h, disk, layer, name := interruptedLayer(t)
	disk.active = true
	mustMakeAs(t, h, "other", layered(t, "b", "base", "python"))
	if disk.active || h.domains[layer.name] != nil || h.volumes["ssd/"+name].content == nil {
		t.Errorf("the host has %v, %v", h.volumes, h.domains)
	}
}

func mustMakeAs(t *testing.T, h *fakeHost, owner string, s content.Spec) {
	t.Helper()
	if _, err := (&content.Creator{Owner: owner}).Make(t.Context(), "a", h, s, quiet); err != nil {
		t.Fatal(err)
	}
}

// Without the domain of its disk, or without its journal, a layer is not completed.
func TestMake_LayerIsNotCompletedWithoutItsJournal(t *testing.T) {
	for what, lose := range map[string]func(h *fakeHost, layer string){
		"the connection is lost":    func(h *fakeHost, _ string) { h.disconnect() },
		"the journal is taken over": func(h *fakeHost, layer string) { delete(h.domains, layer) },
	} {
		h := newHost()
		spec := layered(t, "a", "base", "python")
		open, name := spec.Layers[1].Open, ""
		spec.Layers[1].Open = func(ctx context.Context) (io.ReadCloser, error) {
			for d := range maps.Values(maps.Clone(h.domains)) {
				if note, _, _ := domainxml.ParseJournal(d.xml); note.Creator != "" {
					name = note.Volume
					lose(h, d.name)
				}
			}
			return open(ctx)
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if v := h.volumes["ssd/"+name]; err == nil || v != nil && v.content != nil || h.volumes["ssd/a"] != nil {
			t.Errorf("%s: %v, and the layer is %+v", what, err, v)
		}
		mustMake(t, h, layered(t, "a", "base", "python"))
		if v := h.volumes["ssd/"+path.Base(h.volumes["ssd/a"].Backing)]; v == nil || v.content == nil {
			t.Errorf("%s: after the next apply the layer is %+v", what, v)
		}
	}
}

// A layer whose journal is gone when it is complete, because the answer was lost, is used by others: it stays.
func TestMake_LayerStaysWhenTheAnswerIsLost(t *testing.T) {
	h := &answerless{fakeHost: newHost()}
	made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, layered(t, "a", "base", "python"), quiet)
	top := h.volumes["ssd/"+path.Base(made.Backing)]
	if err != nil || h.lost != 2 || len(made.Bases) != 2 || !bytes.HasPrefix(top.content, []byte("QFI")) {
		t.Errorf("%v, and the host has %v", err, h.volumes)
	}
}

// answerless loses the answers to the removal of layers' journals.
type answerless struct {
	*fakeHost
	lost int
}

func (h *answerless) Undefine(ctx context.Context, uuid string) error {
	d, err := h.byUUID(uuid)
	if err != nil {
		return err
	}
	err = h.fakeHost.Undefine(ctx, uuid)
	if note, _, _ := domainxml.ParseJournal(d.xml); note.Creator != "" && err == nil {
		h.lost++
		err = errors.New("the answer was lost")
	}
	return err
}
