package content_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Only what is certainly another image counts as one: overlays of network storage have no reference, and such storage has many names.
func TestIsOther(t *testing.T) {
	const byPath = "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2001-04.com.example:disk-lun-1"
	local := volume.Image{Type: "file", Format: "qcow2", Name: "/ssd/lower", Hosts: []string{"a"}}
	bound := volume.Image{Type: "block", Name: "/dev/vg/lower", Hosts: []string{"a", "b"}, Binding: "b"}
	unit := volume.Image{Type: "network", Protocol: "iscsi", Name: "iqn.2001-04.com.example:disk/1"}
	attached := volume.Image{Type: "block", Name: byPath, Hosts: []string{"a"}}
	for _, c := range []struct {
		named string
		below volume.Image
		want  bool
	}{
		{"/ssd/lower", local, false},
		{"/ssd//./lower", local, false},
		{"lower", local, false},
		{"../ssd/lower", local, false},
		{"file:/ssd/lower", local, false},
		{"", local, true},
		{"/ssd/other", local, true},
		{"other", local, true},
		{"nbd://server/export", local, true},
		{`json:{"driver":"file","filename":"/ssd/lower"}`, local, true},
		{"nbd:unix:/run/x", local, true},
		{`json:{"driver":"iscsi"}`, unit, false},
		{"/dev/vg/lower", bound, false},
		{"", bound, true},
		{"/dev/vg/other", bound, true},
		{"", unit, false},
		{"iscsi://10.0.0.1/iqn.2001-04.com.example:disk/1", unit, false},
		{byPath, unit, false},
		{"/ssd/other", unit, true},
		{"", attached, false},
		{byPath, attached, false},
	} {
		if got := content.IsOther(c.named, "/ssd/root", c.below); got != c.want {
			t.Errorf("%q over %s: %v", c.named, c.below.Name, got)
		}
	}
}

// An overlay is refused if its own header references another backing file; the header of another volume of its name does not matter.
func TestCheckBacking(t *testing.T) {
	const id = "0b5a4c52-6a0c-4b3f-9d0c-6f8f0a1b2c3d"
	naming := func(backing string) []byte {
		head := qcow2(1 << 20)
		if backing != "" {
			copy(head[1024:], backing)
			binary.BigEndian.PutUint64(head[8:], 1024)
			binary.BigEndian.PutUint32(head[16:], uint32(len(backing)))
		}
		return head
	}
	far := naming("/etc/shadow")
	binary.BigEndian.PutUint64(far[8:], 1<<20)
	top := volume.Image{Type: "file", Format: "qcow2", Name: "/ssd/root", Generation: id}
	lower := volume.Image{Type: "file", Format: "raw", Name: "/ssd/lower", Generation: "l"}
	alone, raw := top, top
	alone.Generation, raw.Format = "", "raw"
	for name, c := range map[string]struct {
		head  []byte
		chain []volume.Image
		want  error
	}{
		"as it was made":             {naming("/ssd/lower"), []volume.Image{top, lower}, nil},
		"pulled":                     {naming(""), []volume.Image{top, lower}, content.ErrRebased},
		"pulled, with its identity":  {giveIdentity(t, naming(""), id), []volume.Image{top, lower}, content.ErrRebased},
		"over another one":           {naming("/ssd/other"), []volume.Image{top, lower}, content.ErrRebased},
		"taken as it is":             {naming(""), []volume.Image{top}, nil},
		"below another overlay":      {naming(""), []volume.Image{{Type: "file", Name: "/ssd/gone", Format: "qcow2", Generation: "g"}, top, lower}, content.ErrRebased},
		"another volume of its name": {giveIdentity(t, naming(""), "1d5b4b3e-52c6-4d0e-9f43-0e4a3a0a8a11"), []volume.Image{top, lower}, nil},
		"nobody made it here":        {naming(""), []volume.Image{alone, lower}, nil},
		"raw":                        {naming(""), []volume.Image{raw, lower}, nil},
		"a name from nowhere":        {naming("/etc/shadow"), []volume.Image{top}, content.ErrNamesBacking},
		"a name out of sight":        {far, []volume.Image{top}, content.ErrNamesBacking},
		"a name below a master":      {naming("/etc/shadow"), []volume.Image{{Type: "file", Name: "/ssd/gone", Format: "qcow2", Generation: "g"}, top}, content.ErrNamesBacking},
		"a guest's":                  {naming("/etc/shadow"), []volume.Image{raw}, nil},
		"others'":                    {naming("/etc/shadow"), []volume.Image{alone}, nil},
		"nothing":                    {naming(""), nil, nil},
	} {
		h := newHost()
		h.volumes["ssd/root"] = &fakeVolume{
			StorageVolume: host.StorageVolume{Pool: "ssd", Name: "root", Type: "file", Format: "qcow2", Path: "/ssd/root"}, head: c.head,
		}
		seen, err := content.InspectChain(t.Context(), h, c.chain)
		if err == nil {
			err = content.CheckBacking(c.chain, seen)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A header that references an external data file is refused whenever the image is to be opened, even if the identity is right.
func TestRecognize_DataFile(t *testing.T) {
	const id = "0b5a4c52-6a0c-4b3f-9d0c-6f8f0a1b2c3d"
	for name, c := range map[string]struct {
		head []byte
		want error
	}{
		"as it was made":     {qcow2(1 << 20), nil},
		"its data elsewhere": {split(), content.ErrDataFile},
	} {
		h := newHost()
		h.volumes["ssd/root"] = &fakeVolume{
			StorageVolume: host.StorageVolume{Pool: "ssd", Name: "root", Type: "file", Format: "qcow2", Path: "/ssd/root"}, head: giveIdentity(t, c.head, id),
		}
		i := volume.Image{Type: "file", Format: "qcow2", Name: "/ssd/root", Generation: id}
		if err := recognizeChain(t, h, i); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A reference is printed without parts that may be secret.
func TestShown(t *testing.T) {
	for named, want := range map[string]string{
		"": "nothing", "/ssd/lower": "/ssd/lower", "lower": "lower", "file:/ssd/lower": "file:/ssd/lower",
		"https://user:secret@host/x.qcow2?sig=secret#secret":                                      "https://host/x.qcow2",
		`json:{"driver":"https","url":"https://user:secret@host/x","cookie":"s=secret"}`:          "a json: reference",
		`json:{"driver":"qcow2","file":{"driver":"file","filename":"/ssd/lower"},"key":"secret"}`: "a json: reference",
		"rbd:pool/image:id=admin:key=secret:mon_host=1.2.3.4":                                     "rbd:pool/image",
		"https://host/%zz?sig=secret":                                                             "https://...",
		"nbd:unix:/run/x:exportname=secret":                                                       "nbd:unix",
	} {
		if got := content.Shown(named); got != want {
			t.Errorf("%q is shown as %q", named, got)
		}
	}
}
