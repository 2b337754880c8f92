package content_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// bytesOf is an image of those bytes.
func bytesOf(b []byte) *content.Image {
	return &content.Image{ID: fmt.Sprintf("%d bytes", len(b)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b)), nil
	}}
}

// qcow2 is an empty image of that capacity.
func qcow2(capacity uint64) []byte {
	head := make([]byte, 4<<16)
	copy(head, "QFI\xfb")
	binary.BigEndian.PutUint32(head[4:], 3)
	binary.BigEndian.PutUint32(head[20:], 16)
	binary.BigEndian.PutUint64(head[24:], capacity)
	binary.BigEndian.PutUint32(head[36:], 1)
	binary.BigEndian.PutUint64(head[40:], 0x30000)
	binary.BigEndian.PutUint64(head[48:], 0x10000)
	binary.BigEndian.PutUint32(head[56:], 1)
	binary.BigEndian.PutUint32(head[96:], 4)
	binary.BigEndian.PutUint32(head[100:], 104)
	binary.BigEndian.PutUint64(head[0x10000:], 0x20000)
	copy(head[0x20000:], []byte{0, 1, 0, 1, 0, 1, 0, 1})
	return head
}

func uploaded(name string, i *content.Image, capacity int64) content.Spec {
	return content.Spec{Pool: "ssd", Name: name, Content: i, Capacity: capacity}
}

func over(name string, i *content.Image) content.Spec {
	return content.Spec{Pool: "ssd", Name: name, Base: i, Format: "qcow2"}
}

func TestUpload_Size(t *testing.T) {
	for _, c := range []struct {
		name       string
		image      []byte
		size       int64
		format     string
		capacity   int64
		errorParts string
	}{
		{"raw", make([]byte, 4096), 0, "raw", 4096, ""},
		{"raw with half a sector", make([]byte, 700), 0, "raw", 4096, ""},
		{"raw with half a large sector", make([]byte, 3*2048), 0, "raw", 8192, ""},
		{"raw with half a large sector, larger", make([]byte, 3*2048), 7 << 10, "raw", 7 << 10, ""},
		{"raw, larger", make([]byte, 4096), 1 << 20, "raw", 1 << 20, ""},
		{"raw, smaller", make([]byte, 4096), 2048, "", 0, "the image has more bytes, and the disk is to have 2Ki"},
		{"qcow2", qcow2(1 << 20), 0, "qcow2", 1 << 20, ""},
		{"qcow2, larger", qcow2(1 << 20), 1 << 21, "qcow2", 1 << 21, ""},
		{"qcow2 that is cut off", qcow2(1 << 20)[:image.HeadSize], 0, "", 0, "It is cut off, or broken"},
		{"qcow2 with a long tail", append(qcow2(1<<20), make([]byte, 80<<20)...), 0, "", 0, "twice what its size and its tables account for"},
		{"qcow2, smaller", qcow2(1 << 20), 1 << 19, "", 0, "the image has 1Mi, and the disk is to have 512Ki"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost()
			made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, uploaded("web", bytesOf(c.image), c.size), quiet)
			if c.errorParts != "" {
				if err == nil || !strings.Contains(err.Error(), c.errorParts) || len(h.volumes)+len(h.domains) != 0 {
					t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
				}
				return
			}
			if err != nil || made.Format != c.format || made.Capacity != c.capacity {
				t.Errorf("got %+v, %v", made, err)
			}
		})
	}
}

// What is for a volume that is there must not get larger than that.
func TestUpload_PaddedUpToFixedVolume(t *testing.T) {
	spec := uploaded("web", bytesOf(make([]byte, 4096+100)), 4096+1024)
	spec.IsFixed = true
	made, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", newHost(), spec, quiet)
	if err != nil || made.Capacity != 4096+1024 {
		t.Errorf("got %+v, %v", made, err)
	}
}

func TestUpload_BadImageLeavesNothing(t *testing.T) {
	bad := errors.New("its checksum is another")
	for _, spec := range []content.Spec{uploaded("web", nil, 0), over("web", nil)} {
		h := newHost()
		i := &content.Image{ID: "bad", Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), failing{bad})), nil
		}}
		if spec.Base = nil; spec.Format != "" {
			spec.Base = i
		} else {
			spec.Content = i
		}
		_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
		if !errors.Is(err, bad) || len(h.volumes)+len(h.domains) != 0 {
			t.Errorf("got %v, and the host has %v, %v", err, h.volumes, h.domains)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestUpload_SharedImageIsRemovedWithLastDisk(t *testing.T) {
	h, maker, shared := newHost(), &content.Creator{Owner: "prod"}, bytesOf(qcow2(1<<20))
	var all []content.Created
	for n := range 5 {
		made, err := maker.Make(t.Context(), "a", h, over(fmt.Sprintf("web-%d", n), shared), quiet)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	if h.uploads != 1 || len(h.volumes) != 6 {
		t.Errorf("%d uploads, and the host has %v", h.uploads, h.volumes)
	}
	// An orphan of an interrupted deletion goes, too.
	base := path.Base(h.volumes["ssd/web-0"].Backing)
	orphan := content.BasePrefix + strings.Repeat("0", 64)
	h.volumes["ssd/"+orphan] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: orphan, Path: "/ssd/" + orphan}}
	h.secrets["virtclaim base ssd/"+orphan] = libvirtxml.Secret{
		UUID: "11111111-2222-4333-8444-555555555555", Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: "virtclaim base ssd/" + orphan},
	}
	fresh := content.BasePrefix + strings.Repeat("1", 64) // has no disk yet
	h.volumes["ssd/"+fresh] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: fresh, Path: "/ssd/" + fresh}}
	if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", base); err != nil || h.volumes["ssd/"+fresh] == nil || h.volumes["ssd/"+orphan] != nil {
		t.Errorf("%v, and the host has %v", err, h.volumes)
	}
	delete(h.volumes, "ssd/"+fresh)
	for n, made := range all {
		if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", base); err != nil || len(h.volumes) != 6-n {
			t.Fatalf("%v, and the host has %v", err, h.volumes)
		}
		if err := maker.Remove(t.Context(), "a", h, "ssd", made.Name, made.Generation); err != nil {
			t.Fatal(err)
		}
	}
	if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", base); err != nil || len(h.volumes)+len(h.domains) != 0 {
		t.Errorf("%v, and the host has %v, %v", err, h.volumes, h.domains)
	}
}

func TestUpload_SharedImageInUseIsKept(t *testing.T) {
	h, maker := newHost(), &content.Creator{Owner: "prod"}
	made, err := maker.Make(t.Context(), "a", h, over("web", bytesOf(qcow2(1<<20))), quiet)
	if err != nil {
		t.Fatal(err)
	}
	base := h.volumes["ssd/web"].Backing
	h.domains["theirs"] = &fakeDomain{name: "theirs", uuid: "u", xml: `<domain><name>theirs</name><devices><disk type='file' device='disk'>
<source file='` + base + `'/><target dev='vda'/></disk></devices></domain>`}
	if err := maker.Remove(t.Context(), "a", h, "ssd", "web", made.Generation); err != nil {
		t.Fatal(err)
	}
	if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", path.Base(base)); err != nil || len(h.volumes) != 1 {
		t.Errorf("%v, and the host has %v", err, h.volumes)
	}
}

// An image that a domain writes to is not what was downloaded: a block commit may have written to it. A reader is no obstacle.
func TestMake_NoDiskOverASharedImageThatIsWrittenTo(t *testing.T) {
	for name, c := range map[string]struct {
		device string
		writes string // the format in which the domain does
	}{
		"its disk":         {"<disk type='file' device='disk'><driver type='qcow2'/><source file='%s'/><target dev='vda'/></disk>", "qcow2"},
		"its disk, as raw": {"<disk type='file' device='disk'><driver type='raw'/><source file='%s'/><target dev='vda'/></disk>", "raw"},
		"what it commits to": {"<disk type='file' device='disk'><driver type='qcow2'/><source file='/ssd/web'/><mirror type='file' job='active-commit'>" +
			"<format type='qcow2'/><source file='%s'/></mirror><target dev='vda'/></disk>", "<its format>"},
		"below its disk": {"<disk type='file' device='disk'><driver type='qcow2'/><source file='/ssd/web'/><backingStore type='file'>" +
			"<format type='qcow2'/><source file='%s'/><backingStore/></backingStore><target dev='vda'/></disk>", ""},
		"read-only": {"<disk type='file' device='disk'><driver type='qcow2'/><source file='%s'/><target dev='vda'/><readonly/><shareable/></disk>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, maker, shared := newHost(), &content.Creator{Owner: "prod"}, bytesOf(qcow2(1<<20))
			if _, err := maker.Make(t.Context(), "a", h, over("web", shared), quiet); err != nil {
				t.Fatal(err)
			}
			h.domains["theirs"] = &fakeDomain{name: "theirs", uuid: "u", xml: "<domain><name>theirs</name><devices>" +
				fmt.Sprintf(c.device, h.volumes["ssd/web"].Backing) + "</devices></domain>"}
			_, err := maker.Make(t.Context(), "a", h, over("db", shared), quiet)
			if (err != nil) != (c.writes != "") || err != nil && (!strings.Contains(err.Error(), "domain theirs has the image") || h.volumes["ssd/db"] != nil) {
				t.Errorf("got %v", err)
			}
			command := "qemu-img convert -f " + c.writes + " -O qcow2 " + h.volumes["ssd/web"].Backing + " <new image>"
			if err != nil && !strings.Contains(err.Error(), command) {
				t.Errorf("%q is not in: %v", command, err)
			}
		})
	}
}

// A block commit without --base changes the image that disks share. Once no domain has it open, only the file itself shows that.
func TestMake_NoDiskOverASharedImageThatWasWrittenTo(t *testing.T) {
	h, maker, shared := newHost(), &content.Creator{Owner: "prod"}, bytesOf(qcow2(1<<20))
	for _, name := range []string{"web", "db"} {
		if _, err := maker.Make(t.Context(), "a", h, over(name, shared), quiet); err != nil {
			t.Fatal(err)
		}
	}
	base := path.Base(h.volumes["ssd/web"].Backing)
	h.volumes["ssd/"+base].Modified = "later"
	_, err := maker.Make(t.Context(), "a", h, over("third", shared), quiet)
	if err == nil || !strings.Contains(err.Error(), "was written to since it was downloaded") || h.volumes["ssd/third"] != nil {
		t.Errorf("got %v", err)
	}
	chain := []volume.Image{{Type: "file", Name: "/ssd/web", Generation: "11111111-1111-4111-8111-111111111111"}, {Type: "file", Name: "/ssd/" + base}}
	if err := content.CheckMasterRecords(t.Context(), h, chain); !errors.Is(err, content.ErrMasterChanged) {
		t.Errorf("a machine starts over it: %v", err)
	}
	// The next download creates a new image with a new record, and nothing is left of the former image.
	for range 2 {
		h.volumes, h.domains, maker = map[string]*fakeVolume{}, map[string]*fakeDomain{}, &content.Creator{Owner: "prod"}
		if _, err := maker.Make(t.Context(), "a", h, over("web", shared), quiet); err != nil {
			t.Fatal(err)
		}
	}
	delete(h.volumes, "ssd/web")
	if err := maker.CollectGarbage(t.Context(), "a", h, "ssd", base); err != nil || len(h.volumes) > 0 {
		t.Errorf("%v, left is %v", err, h.volumes)
	}
	for usage := range h.secrets {
		if strings.Contains(usage, base) {
			t.Errorf("left is the note of %s", usage)
		}
	}
}

// The creator of the image had lost the journal, and then the connection.
func TestUpload_UnfinishedSharedImageIsRecreated(t *testing.T) {
	h, maker, shared := newHost(), &content.Creator{Owner: "prod"}, bytesOf(qcow2(1<<20))
	if _, err := maker.Make(t.Context(), "a", h, over("web", shared), quiet); err != nil {
		t.Fatal(err)
	}
	base := h.volumes["ssd/"+path.Base(h.volumes["ssd/web"].Backing)]
	base.content = nil
	if _, err := maker.Make(t.Context(), "a", h, over("db", shared), quiet); err != nil || h.uploads != 2 {
		t.Errorf("%v after %d uploads", err, h.uploads)
	}
}

func TestUpload_LostJournalLeavesNoVolume(t *testing.T) {
	for when, lose := range map[string]func(h *fakeHost) (before, after func()){
		"before the volume is there": func(h *fakeHost) (func(), func()) { return func() { clear(h.domains) }, nil },
		"when all is there":          func(h *fakeHost) (func(), func()) { return nil, func() { clear(h.domains) } },
	} {
		t.Run(when, func(t *testing.T) {
			h := newHost()
			before, after := lose(h)
			i := &content.Image{ID: "x", Open: func(context.Context) (io.ReadCloser, error) {
				if before != nil {
					before()
				}
				return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), calls{after})), nil
			}}
			if _, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, uploaded("web", i, 0), quiet); err == nil {
				t.Error("it was made")
			}
			if v := h.volumes["ssd/web"]; before != nil && v != nil || v != nil && v.content != nil {
				t.Errorf("the host has %v", v)
			}
		})
	}
}

// calls is a reader without content that calls do first.
type calls struct{ do func() }

func (c calls) Read([]byte) (int, error) {
	if c.do != nil {
		c.do()
	}
	return 0, io.EOF
}

// Two applies create disks with the same prefix at once: neither takes the volume of the other for a stale one.
func TestGenerateName_NeverOfRunningCreator(t *testing.T) {
	h := newHost()
	var second content.Created
	spec := content.Spec{Pool: "ssd", Prefix: "web-"}
	inner := spec
	inner.Content = bytesOf(make([]byte, 4096))
	spec.Content = &content.Image{ID: inner.Content.ID, Open: func(ctx context.Context) (io.ReadCloser, error) {
		var err error
		if second, err = (&content.Creator{Owner: "prod"}).Make(ctx, "a", h, inner, quiet); err != nil {
			t.Error(err)
		}
		return inner.Content.Open(ctx)
	}}
	first, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
	if err != nil || first.Name == second.Name || len(h.volumes) != 2 {
		t.Errorf("%v: %s and %s", err, first.Name, second.Name)
	}
}

func TestUpload_SharesOnlyContentNamedImages(t *testing.T) {
	for name, is := range map[string]bool{
		content.BasePrefix + strings.Repeat("0a", 32): true, content.BasePrefix + "debian": false, "web": false,
	} {
		if content.IsBase("/pool/"+name) != is {
			t.Errorf("%s: %t", name, !is)
		}
	}
}
