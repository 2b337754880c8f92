package content_test

import (
	"context"
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Each overlay has its own record of the file below it, so that the record of a newer content does not affect other overlays.
func TestCheckMasterRecords(t *testing.T) {
	const file, first, second = "/claim/disk.img", "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	h := newHost()
	chain := func(overlay string) []volume.Image {
		return []volume.Image{{Type: "file", Name: "/ssd/" + overlay, Generation: overlay}, {Type: "file", Name: file, Binding: "binding"}}
	}
	over := func(overlay string) []volume.Image {
		return append([]volume.Image{{Type: "file", Name: "/ssd/top", Generation: "33333333-3333-4333-8333-333333333333"}}, chain(overlay)...)
	}
	check := func(what string, chain []volume.Image, want error) {
		t.Helper()
		if err := content.CheckMasterRecords(t.Context(), h, chain); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("a host that does not show files", chain(first), nil)
	h.modified = map[string]string{file: "100.5"}
	check("without a record", chain(first), nil)
	check("unchanged", chain(first), nil)
	h.modified[file] = "200.5"
	check("replaced", chain(first), content.ErrMasterChanged)
	check("an overlay of the overlay", over(first), content.ErrMasterChanged)
	check("another overlay", chain(second), nil)
	check("no file any more", append(chain(first)[:1], volume.Image{Type: "file", Name: "/elsewhere", Binding: "binding"}), content.ErrMasterChanged)
	if err := content.ForgetMasterRecord(t.Context(), h, chain(first)[:1]); err != nil || len(h.secrets) != 1 { // also after a pull
		t.Errorf("%v: %v", err, h.secrets)
	}
	check("forgotten", chain(first), nil)
	h.modified[file] = "100.5"
	check("restored", chain(second), content.ErrMasterChanged)
}

// All masters of a chain are checked, also one that libvirt can't describe any more.
func TestCheckOpenMasters(t *testing.T) {
	const file, overlay = "/claim/disk.img", "11111111-1111-4111-8111-111111111111"
	over := volume.Image{Type: "file", Name: "/ssd/over", Generation: overlay}
	claim := volume.Image{Type: "file", Name: file, Binding: "binding"}
	for name, c := range map[string]struct {
		change func(h *fakeHost)
		want   error
	}{
		"as they were":        {func(*fakeHost) {}, nil},
		"a disk deleted":      {func(h *fakeHost) { delete(h.volumes, "ssd/master") }, content.ErrMasterGone},
		"a disk overwritten":  {func(h *fakeHost) { h.volumes["ssd/master"].Undescribed = true }, content.ErrMasterChanged},
		"a file replaced":     {func(h *fakeHost) { h.modified[file] = "200.5" }, content.ErrMasterChanged},
		"a file not a file":   {func(h *fakeHost) { delete(h.modified, file) }, content.ErrMasterChanged},
		"without its records": {func(h *fakeHost) { clear(h.secrets); h.modified[file] = "200.5" }, nil},
	} {
		h := newHost()
		h.modified = map[string]string{file: "100.5"}
		master := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
		if err := content.CheckMasterRecords(t.Context(), h, []volume.Image{over, claim}); err != nil {
			t.Fatal(err)
		}
		secrets := len(h.secrets)
		c.change(h)
		chain := []volume.Image{over, claim, {Type: "file", Name: "/ssd/master", Format: "qcow2", Generation: master.Generation}}
		if err := content.CheckOpenMasters(t.Context(), h, chain); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(h.secrets) > secrets {
			t.Errorf("%s: it adds a record", name)
		}
	}
}

// A disk below an overlay that was written to or replaced, with its identity, is detected. A moved pool is not.
func TestCheckMasterRecords_Disk(t *testing.T) {
	const overlay = "11111111-1111-4111-8111-111111111111"
	for name, c := range map[string]struct {
		change func(v *fakeVolume, master *volume.Image)
		want   error
	}{
		"as it was":              {func(*fakeVolume, *volume.Image) {}, nil},
		"written to":             {func(v *fakeVolume, _ *volume.Image) { v.Modified = "200.5" }, content.ErrMasterChanged},
		"restored by seconds":    {func(v *fakeVolume, _ *volume.Image) { v.Modified = "100" }, nil},
		"another second":         {func(v *fakeVolume, _ *volume.Image) { v.Modified = "10" }, content.ErrMasterChanged},
		"another length":         {func(v *fakeVolume, _ *volume.Image) { v.Physical *= 2 }, content.ErrMasterChanged},
		"its pool was moved":     {func(v *fakeVolume, master *volume.Image) { v.Path, master.Name = "/new/master", "/new/master" }, nil},
		"in no storage pool":     {func(v *fakeVolume, _ *volume.Image) { v.Path = "/elsewhere" }, nil},
		"the chain is rebased":   {func(v *fakeVolume, master *volume.Image) { v.Name, v.Path, master.Name = "new", "/ssd/new", "/ssd/new" }, nil},
		"libvirt can't describe": {func(v *fakeVolume, _ *volume.Image) { v.Undescribed = true }, nil},
	} {
		h := newHost()
		made := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "raw", Capacity: 1 << 20})
		v := h.volumes["ssd/master"]
		v.Modified = "100.5"
		master := volume.Image{Type: "file", Name: v.Path, Format: "raw", Generation: made.Generation}
		chain := func() []volume.Image {
			return []volume.Image{{Type: "file", Name: "/ssd/over", Generation: overlay}, master}
		}
		if err := content.CheckMasterRecords(t.Context(), h, chain()); err != nil {
			t.Fatal(err)
		}
		c.change(v, &master)
		if err := content.CheckMasterRecords(t.Context(), h, chain()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// countedInspections is a host that counts how often it is asked what a file is.
type countedInspections struct {
	*fakeHost
	looks int
}

func (h *countedInspections) File(ctx context.Context, path string, head int) (host.File, error) {
	h.looks++
	return h.fakeHost.File(ctx, path, head)
}

// inspectedOnce inspects each file once.
type inspectedOnce struct {
	*countedInspections
	looks *content.FileCache
}

func (h inspectedOnce) File(ctx context.Context, path string, head int) (host.File, error) {
	return h.looks.File(ctx, h.countedInspections, "a", path, head)
}

// A plan looks at a master once, however many overlays it has, and records nothing.
func TestCheckMasters(t *testing.T) {
	const file = "/claim/disk.img"
	overlays := []string{"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"}
	chain := func(overlay string) []volume.Image {
		return []volume.Image{{Type: "file", Name: "/ssd/" + overlay, Generation: overlay}, {Type: "file", Name: file, Binding: "binding"}}
	}
	for name, want := range map[string]error{"unchanged": nil, "overwritten": content.ErrMasterChanged, "not recorded": nil} {
		h := &countedInspections{fakeHost: newHost()}
		h.modified = map[string]string{file: "100.5"}
		if name != "not recorded" {
			for _, overlay := range overlays {
				if err := content.CheckMasterRecords(t.Context(), h, chain(overlay)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if name == "overwritten" {
			h.modified[file] = "200.5"
		}
		h.looks = 0
		secrets := len(h.secrets)
		var looks content.FileCache
		for _, overlay := range overlays {
			if err := content.CheckMasters(t.Context(), inspectedOnce{h, &looks}, chain(overlay)); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if h.looks != 1 || len(h.secrets) != secrets {
			t.Errorf("%s: it looked %d times, and has added %d records", name, h.looks, len(h.secrets)-secrets)
		}
	}
}
