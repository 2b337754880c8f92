package content_test

import (
	"errors"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A volume is recognized by the identity that it gets when it is created, whatever its guest writes, and another one under its name is not.
func TestRecognize(t *testing.T) {
	const stranger = "1d5b4b3e-52c6-4d0e-9f43-0e4a3a0a8a11"
	specs := map[string]content.Spec{
		"clone": clone("web"), "blank": {Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20},
		"upload": uploaded("web", bytesOf(qcow2(1<<20)), 1<<20), "over a shared image": over("web", bytesOf(qcow2(1<<20))),
	}
	for name, spec := range specs {
		for what, c := range map[string]struct {
			change func(h *fakeHost, v *fakeVolume)
			want   error
			raw    error // the error for a volume without a header
		}{
			"unchanged": {change: func(*fakeHost, *fakeVolume) {}},
			"recreated by another configuration": {
				change: func(h *fakeHost, v *fakeVolume) {
					delete(h.volumes, "ssd/web")
					_, err := (&content.Creator{Owner: "other"}).Make(t.Context(), "a", h, content.Spec{Pool: "ssd", Name: "web", Format: v.Format, Capacity: 1 << 20}, quiet)
					if err != nil {
						t.Fatal(err)
					}
				},
				want: content.ErrReplaced, raw: content.ErrReplaced,
			},
			"a folder in its place": {
				change: func(_ *fakeHost, v *fakeVolume) { v.Type = "dir" }, want: content.ErrReplaced, raw: content.ErrReplaced,
			},
			"recreated by hand":  {change: func(_ *fakeHost, v *fakeVolume) { v.head = qcow2(1 << 20) }, want: content.ErrUnrecognized},
			"the ledger is lost": {change: func(h *fakeHost, _ *fakeVolume) { clear(h.secrets) }, raw: content.ErrUnrecognized},
		} {
			h := newHost()
			made := mustMake(t, h, spec)
			if c.change(h, h.volumes["ssd/web"]); made.Format == "raw" {
				c.want = c.raw
			}
			if err := recognize(t, h, h.volumes["ssd/web"].StorageVolume, made.Format, made.Generation); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if c.want == nil {
				continue
			}
			if err := removable(t, h, "web", made.Format, made.Generation); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: removable: %v", name, what, err)
			}
		}
	}
	h := newHost()
	made := mustMake(t, h, specs["blank"])
	v := h.volumes["ssd/web"]
	v.head, v.Format = giveIdentity(t, qcow2(1<<20), stranger), "qcow2"
	if err := recognize(t, h, v.StorageVolume, "raw", made.Generation); err != nil {
		t.Errorf("a guest wrote the head of another volume into its raw disk: %v", err)
	}
}

// A volume of an earlier version has its identity in the state alone. A plan records nothing; an apply that opens it does, once, and that counts from
// then on.
func TestRecognize_EarlierVersions(t *testing.T) {
	h := newHost()
	h.volumes["ssd/web"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web", Type: "file", Format: "qcow2", Capacity: 1}}
	v := h.volumes["ssd/web"].StorageVolume
	if err := recognize(t, h, v, "qcow2", "abcdefghijklmnop"); err != nil || h.changes > 0 {
		t.Errorf("%v after %d changes of the host", err, h.changes)
	}
	for range 2 {
		err := recognizeChain(t, h, volume.Image{Type: "file", Format: "qcow2", Name: "/ssd/web", Generation: "abcdefghijklmnop"})
		if err == nil {
			err = recognize(t, h, v, "qcow2", "abcdefghijklmnop")
		}
		if err != nil || len(h.secrets) != 1 {
			t.Errorf("%v, %v", err, h.secrets)
		}
	}
	if err := recognize(t, h, v, "qcow2", "qrstuvwxyz234567"); !errors.Is(err, content.ErrReplaced) {
		t.Error(err)
	}
	if err := content.Disown(t.Context(), h, "ssd", "web", "abcdefghijklmnop"); err != nil || len(h.secrets) != 0 {
		t.Errorf("%v, %v", err, h.secrets)
	}
}

// An import adopts the identity of the volume, or creates one.
func TestAdopt(t *testing.T) {
	h := newHost()
	made := mustMake(t, h, clone("web"))
	if id, err := content.Adopt(t.Context(), h, made.StorageVolume, "qcow2"); err != nil || id != made.Generation {
		t.Errorf("%q, %v instead of %q", id, err, made.Generation)
	}
	other := host.StorageVolume{Pool: "ssd", Name: "theirs", Type: "file", Format: "qcow2"}
	h.volumes["ssd/theirs"] = &fakeVolume{StorageVolume: other}
	id, err := content.Adopt(t.Context(), h, other, "qcow2")
	if err != nil {
		t.Fatal(err)
	}
	if err := recognize(t, h, other, "qcow2", id); err != nil || h.volumes["ssd/theirs"].head != nil {
		t.Errorf("%v, and its head is %v", err, h.volumes["ssd/theirs"].head)
	}
}

// A logical volume with another LVM UUID is another volume, even under the same name.
func TestRecognize_LogicalVolumes(t *testing.T) {
	h := newHost()
	v := host.StorageVolume{Pool: "vg", Name: "web", Type: "block", Format: "raw", Path: "/dev/vg/web", Key: "one"}
	id, err := content.Adopt(t.Context(), h, v, "raw")
	if err != nil {
		t.Fatal(err)
	}
	if err := recognize(t, h, v, "raw", id); err != nil {
		t.Error(err)
	}
	v.Key = "two"
	if err := recognize(t, h, v, "raw", id); !errors.Is(err, content.ErrReplaced) {
		t.Error(err)
	}
}

// Creating and removing a volume drops the ledger's entry of a former volume of its name: it would recognize any file that is created
// there.
func TestMake_DropsTheEntryOfAFormerVolume(t *testing.T) {
	h := newHost()
	former := libvirtxml.Secret{
		UUID: "11111111-2222-4333-8444-555555555555", Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: "virtclaim ssd/web"},
	}
	h.secrets[former.Usage.Volume] = former
	made := mustMake(t, h, clone("web"))
	if len(h.secrets) > 0 {
		t.Errorf("after it was made: %v", h.secrets)
	}
	h.secrets[former.Usage.Volume] = former
	err := (&content.Creator{Owner: "prod"}).Remove(t.Context(), "a", h, "ssd", made.Name, made.Generation)
	if err != nil || len(h.volumes) > 0 || len(h.secrets) > 0 {
		t.Errorf("after it was removed: %v, %v, %v", err, h.volumes, h.secrets)
	}
}

// A machine may have the only copy of a volume that was deleted from its pool, or replaced there.
func TestIsGone(t *testing.T) {
	for name, spec := range map[string]content.Spec{
		"qcow2": {Pool: "ssd", Name: "web", Format: "qcow2", Capacity: 1 << 20}, "raw": {Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20},
	} {
		h := newHost()
		made := mustMake(t, h, spec)
		open := volume.Image{Type: "file", Format: made.Format, Name: made.Path, Generation: made.Generation}
		check := func(what string, open volume.Image, want bool) {
			if gone, err := content.IsGone(t.Context(), h, open); err != nil || gone != want {
				t.Errorf("%s, %s: gone is %v, %v", name, what, gone, err)
			}
		}
		check("there", open, false)
		other := open
		other.Generation = "1d5b4b3e-52c6-4d0e-9f43-0e4a3a0a8a11"
		check("another one", other, true)
		other.Generation = ""
		check("one that nobody knows", other, false)
		delete(h.volumes, "ssd/web")
		check("deleted", open, true)
	}
}

// The identity of an imported image moves to its header once no domain has it open, so that another file of that name is not mistaken for
// it.
func TestEngrave(t *testing.T) {
	for name, c := range map[string]struct {
		format   string
		runs     bool
		hosts    []string
		engraved bool
	}{
		"at rest": {"qcow2", false, nil, true}, "of a running machine": {"qcow2", true, nil, false}, "raw": {"raw", false, nil, false},
		"of its host": {"qcow2", false, []string{"a"}, true}, "that another host may have open": {"qcow2", false, []string{"a", "b"}, false},
	} {
		h := newHost()
		v := host.StorageVolume{Pool: "ssd", Name: "web", Type: "file", Format: c.format, Path: "/ssd/web"}
		h.volumes["ssd/web"] = &fakeVolume{StorageVolume: v, head: qcow2(1 << 20)}
		id, err := content.Adopt(t.Context(), h, v, c.format)
		if err != nil {
			t.Fatal(err)
		}
		if c.runs {
			h.domains["web"] = opener(opens("file='/ssd/web'", c.format))
			h.domains["web"].active = true
		}
		i := volume.Image{Type: "file", Format: c.format, Name: "/ssd/web", Generation: id, Hosts: c.hosts}
		seen, err := content.Inspect(t.Context(), h, i)
		h.volumes["ssd/web"].head = qcow2(2 << 20) // a machine that was waited for has grown it
		if err == nil {
			err = content.Engrave(t.Context(), h, content.OpenedBy(h.definitions(t)), seen, i)
		}
		if err != nil {
			t.Error(name, err)
		}
		if is, err := image.Probe(h.volumes["ssd/web"].head); err != nil || is.Capacity != 2<<20 {
			t.Errorf("%s: a former header was written: %+v, %v", name, is, err)
		}
		if engraved := image.Identity(h.volumes["ssd/web"].head) == id && len(h.secrets) == 0; engraved != c.engraved {
			t.Errorf("%s: engraved is %v", name, engraved)
		}
		if err := recognize(t, h, v, c.format, id); err != nil {
			t.Error(name, err)
		}
	}
}
