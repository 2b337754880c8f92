package content_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The ledger's entry of a raw file does not count for another file under its name, so that the master of an overlay there is kept.
func TestRemovable_EntryOfAnotherFile(t *testing.T) {
	grow := func(t *testing.T, h *fakeHost, made content.Created) {
		t.Helper()
		i := volume.Image{Type: "file", Format: "raw", Generation: made.Generation}
		if err := content.NoteGrowth(t.Context(), h, h.volumes["ssd/above"].StorageVolume, i, 2<<20); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *fakeHost, content.Created)
		backs  bool
	}{
		"the raw file": {change: func(*testing.T, *fakeHost, content.Created) {}},
		"an overlay in its place": {
			change: func(_ *testing.T, h *fakeHost, _ content.Created) { h.volumes["ssd/above"].Physical = 196 << 10 }, backs: true,
		},
		"of unknown length": {
			change: func(_ *testing.T, h *fakeHost, _ content.Created) { h.volumes["ssd/above"].Physical = 0 }, backs: true,
		},
		"after it has grown": {change: func(t *testing.T, h *fakeHost, made content.Created) {
			t.Helper()
			grow(t, h, made)
			h.volumes["ssd/above"].Physical = 2 << 20
		}},
		"after its growth failed": {change: grow},
		"grown again after that": {change: func(t *testing.T, h *fakeHost, made content.Created) {
			t.Helper()
			grow(t, h, made)
			grow(t, h, made)
			h.volumes["ssd/above"].Physical = 2 << 20
		}},
		"an overlay that grows": {backs: true, change: func(t *testing.T, h *fakeHost, made content.Created) {
			t.Helper()
			h.volumes["ssd/above"].Physical, h.volumes["ssd/above"].head = 196<<10, overlaid()
			grow(t, h, made)
			h.volumes["ssd/above"].Physical = 2 << 20
		}},
		"grown by others": {
			change: func(_ *testing.T, h *fakeHost, _ content.Created) { h.volumes["ssd/above"].Physical = 2 << 20 }, backs: true,
		},
		"an entry without a length": {backs: true, change: func(_ *testing.T, h *fakeHost, _ content.Created) {
			s := h.secrets["virtclaim ssd/above"]
			s.Description = "identity of the volume above in the storage pool ssd, which is raw"
			h.secrets["virtclaim ssd/above"] = s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			master := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
			made := mustMake(t, h, content.Spec{Pool: "ssd", Name: "above", Format: "raw", Capacity: 1 << 20})
			h.volumes["ssd/above"].Backing = "/ssd/master"
			c.change(t, h, made)
			err := removable(t, h, "master", "qcow2", master.Generation)
			if errors.Is(err, content.ErrBacking) != c.backs || !c.backs && err != nil {
				t.Errorf("got %v", err)
			}
			err = recognize(t, h, h.volumes["ssd/above"].StorageVolume, "raw", made.Generation)
			if isOther := c.backs && name != "an entry without a length"; errors.Is(err, content.ErrOtherLength) != isOther || !isOther && err != nil {
				t.Errorf("recognized: %v", err)
			}
		})
	}
}

// A file of another length is not the raw disk, whatever it begins with, for example a backup that was restored as an image. A guest's writes do
// not change the length of its file.
func TestRecognize_OtherLength(t *testing.T) {
	for name, c := range map[string]struct {
		head        []byte
		length      int64
		want        error
		undescribed bool
	}{
		"the raw file":             {head: make([]byte, 4096), length: 1 << 20},
		"its guest wrote a header": {head: overlaid(), length: 1 << 20},
		"another length":           {head: make([]byte, 4096), length: 200704, want: content.ErrOtherLength},
		"an image":                 {head: qcow2(1 << 20), length: 200704, want: content.ErrOtherLength},
		"an undescribed raw file":  {head: overlaid(), length: 1 << 20, undescribed: true},
		"an undescribed image":     {head: overlaid(), length: 200704, undescribed: true, want: content.ErrOtherLength},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			made := mustMake(t, h, content.Spec{Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20})
			v := h.volumes["ssd/web"]
			v.head, v.Physical = c.head, c.length
			has := "200704 bytes"
			if v.Undescribed = c.undescribed; c.undescribed {
				v.Physical, v.length, has = 0, c.length, "another length"
			}
			err := recognizeChain(t, h, volume.Image{Type: "file", Name: v.Path, Format: "raw", Generation: made.Generation})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), "has "+has+", and was recorded with 1048576 bytes") || !strings.Contains(err.Error(), "virsh secret-define")) {
				t.Error(err)
			}
		})
	}
}

// A raw file that is imported again stays raw, whatever header its guest has written; another file under its name does not.
func TestFormatOf_NotedAsRaw(t *testing.T) {
	for name, c := range map[string]struct {
		disk, want string
		length     int64
	}{
		"the raw file":             {length: 1 << 20, want: "raw"},
		"another one":              {length: 196 << 10, want: "qcow2"},
		"a domain has it as qcow2": {length: 1 << 20, disk: opens("file='/ssd/web'", "qcow2"), want: "qcow2"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			mustMake(t, h, content.Spec{Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20})
			v := h.volumes["ssd/web"]
			v.head, v.Format, v.Physical = overlaid(), "qcow2", c.length
			if c.disk != "" {
				h.domains["web"] = opener(c.disk)
			}
			is, err := content.FormatOf(t.Context(), h, v.StorageVolume)
			if err != nil || is.Name != c.want || strings.Contains(is.String(), "volume virtclaim ssd/web") != (c.want == "raw") {
				t.Errorf("got %+v (%s), %v", is, is, err)
			}
		})
	}
}

// The ledger's entry of a volume that libvirt can't describe counts if the file has the recorded length.
func TestRemovable_EntryOfUndescribed(t *testing.T) {
	for length, backs := range map[int64]bool{1 << 20: false, 196 << 10: true} {
		h := newHost()
		master := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
		mustMake(t, h, content.Spec{Pool: "ssd", Name: "above", Format: "raw", Capacity: 1 << 20})
		v := h.volumes["ssd/above"]
		v.StorageVolume = host.StorageVolume{Pool: "ssd", Name: "above", Path: "/ssd/above", Type: "file", Undescribed: true}
		v.length, v.head = length, naming("file:master")
		err := removable(t, h, "master", "qcow2", master.Generation)
		if errors.Is(err, content.ErrBacking) != backs || !backs && err != nil {
			t.Errorf("of %d bytes: %v", length, err)
		}
	}
}

// libvirt returns the reference of a header unchanged, in any spelling of the path.
func TestRemovable_SpellingsOfAPath(t *testing.T) {
	for _, name := range []string{
		"/ssd/master", "/ssd//./master", "file:/ssd/master", `json:{"driver":"qcow2","file":{"driver":"file","filename":"/ssd/master"}}`,
		`json:{"file.driver":"file","file.filename":"master","driver":"qcow2"}`, "/link/ssd/master", "file:/link//ssd/master",
		`json:{"driver":"qcow2","file":{"driver":"file","filename":"/link/ssd/master"}}`,
		`json:{'driver':'qcow2','file':{'driver':'file','filename':'/link/ssd/master'}}`,
		"blkdebug::/ssd/master", "blkdebug:/etc/conf:/link/ssd/master", "blkverify:/link/ssd/master:/ssd/other",
	} {
		h := newHost()
		master := mustMake(t, h, content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20})
		mustMake(t, h, content.Spec{Pool: "ssd", Name: "above", Format: "qcow2", Capacity: 1 << 20})
		h.volumes["ssd/above"].Backing = name
		if err := removable(t, h, "master", "qcow2", master.Generation); !errors.Is(err, content.ErrBacking) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// naming is the header of an overlay with that backing file.
func naming(name string) []byte {
	head := qcow2(1 << 20)
	if name != "" {
		binary.BigEndian.PutUint64(head[8:], 512)
		binary.BigEndian.PutUint32(head[16:], uint32(len(name)))
		copy(head[512:], name)
	}
	return head
}

// An upload that virtclaim opens as raw is recorded as raw, also if libvirt reports another format.
func TestMake_NotesRawWhatLibvirtCallsOtherwise(t *testing.T) {
	iso := make([]byte, 64<<10)
	copy(iso[32769:], "CD001")
	h := newHost()
	mustMake(t, h, uploaded("web", bytesOf(iso), 0))
	v := h.volumes["ssd/web"]
	if v.Format != "iso" {
		t.Fatalf("libvirt takes it for %s", v.Format)
	}
	if is, err := content.FormatOf(t.Context(), h, v.StorageVolume); err != nil || is.Noted == "" {
		t.Errorf("it is not noted as raw: %+v, %v", is, err)
	}
}

// A configuration that declares an imported disk as raw is recorded in the host's ledger.
func TestNoteRaw(t *testing.T) {
	h := newHost()
	v := host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web", Type: "file", Format: "qcow2", Physical: 1 << 20}
	h.volumes["ssd/web"] = &fakeVolume{StorageVolume: v, head: split()}
	id, err := content.Adopt(t.Context(), h, v, "")
	if err == nil {
		err = content.NoteRaw(t.Context(), h, v, volume.Image{Format: "raw", Generation: id})
	}
	if is, asked := content.FormatOf(t.Context(), h, v); err != nil || asked != nil || is.Noted == "" {
		t.Errorf("it is not noted as raw: %+v, %v, %v", is, err, asked)
	}
}

// For a volume that libvirt can't describe, the backing file is read from the header, in any spelling of a path.
func TestNamed_IsAPath(t *testing.T) {
	for name, want := range map[string]string{
		"/ssd/master": "/ssd/master", "/ssd//./master": "/ssd/master", "master": "/ssd/master", "file:/ssd/master": "/ssd/master",
		"file:master": "/ssd/master", "../ssd/master": "/ssd/master", "nbd://server/ssd": "nbd://server/ssd", "": "",
	} {
		h := newHost()
		v := host.StorageVolume{Pool: "ssd", Name: "above", Path: "/ssd/above", Type: "file", Undescribed: true}
		h.volumes["ssd/above"] = &fakeVolume{StorageVolume: v, head: naming(name)}
		if got, err := content.Named(t.Context(), h, v); err != nil || got != want {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}
