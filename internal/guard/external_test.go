package guard_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// snapshotted is a machine with an overlay over its disk data that its metadata do not have.
func snapshotted(t *testing.T, data volume.Image) host.Domain {
	t.Helper()
	d := machine(t, "prod", "virtio", 0, image("/ssd/over", "o"), data)
	noted := regexp.MustCompile(`<image name="/ssd/over"[^>]*>.*?</image>`)
	d.Stored, d.Live = noted.ReplaceAllString(d.Stored, ""), noted.ReplaceAllString(d.Live, "")
	return d
}

// An image below an external snapshot is neither detached nor grown nor cloned, and the error has the remedy.
func TestExternal_OverlayIsRefused(t *testing.T) {
	data := image("/ssd/data", "g")
	ours := machine(t, "prod", "virtio", 0, image("/ssd/over", "o"), data)
	for name, d := range map[string]host.Domain{"running": snapshotted(t, data), "off": snapshotted(t, data)} {
		if name == "off" {
			d.Live = ""
		}
		h := &fakeHost{domains: []host.Domain{ours, d}}
		h.domains[0].Name = "beside"
		for what, err := range map[string]error{
			"detach": detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"}),
			"grow":   guard.External("a", listed(t, h), data),
		} {
			if !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "domain web has the overlay /ssd/over on top of its volume /ssd/data") ||
				!strings.Contains(err.Error(), "virsh blockcommit web vdb --base /ssd/data --active --pivot --wait") ||
				strings.Contains(err.Error(), "virsh start web") != (name == "off") || strings.Contains(err.Error(), "beside") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if len(h.done) != 0 {
			t.Errorf("%s: it did %v", name, h.done)
		}
		h.domains = h.domains[:1]
		if err := guard.External("a", listed(t, h), data); err != nil {
			t.Errorf("an overlay that virtclaim has made: %v", err)
		}
	}
}

// A disk whose machine was pivoted to a copy is not given to other machines, also while that machine is off.
func TestAcquire_CopiedDisk(t *testing.T) {
	data := image("/ssd/data", "g")
	for _, off := range []bool{false, true} {
		d := machine(t, "prod", "virtio", 0, data)
		pivoted := func(text string) string {
			return strings.Replace(text, `<source file="/ssd/data">`, `<source file="/ssd/copy">`, 1)
		}
		d.Stored, d.Live = pivoted(d.Stored), pivoted(d.Live)
		if off {
			d.Live = ""
		}
		w := newWorld()
		w.set("a", d)
		asks := func(uuid string) error {
			return acquire(t, guard.Request{
				Host: "a", Name: "other", UUID: uuid, Owner: "prod", Images: []volume.Image{data},
				Hosts: w.host,
			})
		}
		if err := asks("00000000-0000-0000-0000-00000000000f"); !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "opens /ssd/copy and not its volume /ssd/data") {
			t.Errorf("off %v: %v", off, err)
		}
		if err := guard.CheckCopied("a", listed(t, place{w, "a"}), data, d.UUID); err != nil {
			t.Errorf("its own machine: %v", err)
		}
	}
}

// Network storage has one name on all hosts.
func TestAcquire_CopiedNetworkDisk(t *testing.T) {
	port := int64(3260)
	data := volume.Image{
		Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:vol/1", Format: "raw", AccessMode: volume.WriteExclusive,
		Servers: []volume.Server{{Host: "10.0.0.5", Port: &port}}, Binding: "id/0a1b2c3d/vms/data",
	}
	d := machine(t, "prod", "virtio", 0, data)
	pivoted := regexp.MustCompile(`(?s)<disk type="network"(.*?)<source protocol=.*?</source>`)
	for _, text := range []*string{&d.Stored, &d.Live} {
		if *text = pivoted.ReplaceAllString(*text, `<disk type="file"$1<source file="/ssd/copy"/>`); !strings.Contains(*text, "/ssd/copy") {
			t.Fatal(*text)
		}
	}
	for _, key := range []string{"a", "b"} {
		w := newWorld()
		w.set(key, d)
		for binding, refused := range map[string]bool{data.Binding: true, "other/1/vms/data": true, "other/1/vms/else": false} {
			image := data
			image.Binding, image.Hosts = binding, []string{"a", "b"}
			err := acquire(t, guard.Request{
				Host: "a", Name: "other", UUID: "00000000-0000-0000-0000-00000000000f", Owner: "prod", Images: []volume.Image{image}, Hosts: w.host,
			})
			if errors.Is(err, guard.ErrInUse) != refused {
				t.Errorf("on host %s, bound by %s: %v", key, binding, err)
			}
		}
	}
}

// A pulled overlay has all writes of its machine: it is grown, cloned and detached like any other disk.
func TestExternal_PulledIsFree(t *testing.T) {
	data := image("/ssd/data", "g")
	d := machine(t, "prod", "virtio", 0, data, image("/ssd/lower", "l"))
	below := regexp.MustCompile(`(?s)<backingStore type.*?</backingStore>\s*</backingStore>`)
	d.Stored, d.Live = below.ReplaceAllString(d.Stored, "<backingStore/>"), below.ReplaceAllString(d.Live, "<backingStore/>")
	stored, errStored := domainxml.Read(d.Stored)
	live, errLive := domainxml.Read(d.Live)
	if errStored != nil || errLive != nil {
		t.Fatal(errStored, errLive)
	}
	if all, err := domainxml.Externals(stored, live); err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	d.Live = ""
	h := &fakeHost{domains: []host.Domain{d}}
	if err := guard.External("a", listed(t, h), data); err != nil {
		t.Error(err)
	}
	if err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"}); err != nil || len(h.done) == 0 {
		t.Errorf("%v, %v", err, h.done)
	}
}

// An image below an overlay that was created while the machine was off is in use: the metadata show that, the definition does not.
func TestUsers_BelowOverlayMadeWhileOff(t *testing.T) {
	data := image("/ssd/data", "g")
	d := machine(t, "prod", "virtio", 0, data)
	d.Live = ""
	d.Stored = strings.Replace(d.Stored, `<source file="/ssd/data">`, `<source file="/ssd/over">`, 1)
	h := &fakeHost{domains: []host.Domain{d}}
	uses, err := guard.Users(t.Context(), "a", h, data)
	if err != nil || len(uses) != 1 || uses[0].Depth != 1 || !uses[0].Stored {
		t.Errorf("%+v, %v", uses, err)
	}
	if err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"}); !errors.Is(err, guard.ErrInUse) || len(h.done) != 0 {
		t.Errorf("it was detached: %v, %v", err, h.done)
	}
}

// There is a remedy for each kind of external change; a commit ends at the volume, and never in its master.
func TestExplainExternal(t *testing.T) {
	base := "/" + volume.BasePrefix + strings.Repeat("0a", 32)
	ours, snapshot := volume.Image{Name: "/ours"}, volume.Image{Name: "/snap"}
	for want, e := range map[string]domainxml.External{
		"virsh blockcommit web vda --base /ours --active --pivot --wait, then: virsh snapshot-delete web s --metadata": {
			Chain: []volume.Image{snapshot, ours}, Depth: 1, Base: "/ours", Snapshot: "s", Live: true, Noted: []string{"/ours"},
		},
		"start the domain (virsh start web) and run: virsh blockcommit web vda --base /ours": {
			Chain: []volume.Image{snapshot, ours}, Depth: 1, Base: "/ours", Noted: []string{"/ours"},
		},
		"the index that virsh dumpxml web shows at /ours":   {Chain: []volume.Image{snapshot, ours}, Depth: 1, Live: true, Noted: []string{"/ours"}},
		"opens /snap and not its volume /ours":              {Chain: []volume.Image{snapshot}, Depth: -1, Noted: []string{"/ours"}},
		"use no other overlay of it, and never /ours again": {Chain: []volume.Image{{Name: "/lower"}}, Depth: -1, Noted: []string{"/ours", "/lower"}},
		"copy what it has: qemu-img convert -f raw -O qcow2 " + base + " <new image>": {
			Chain: []volume.Image{{Name: base, Format: "raw"}}, Depth: -1, Noted: []string{"/ours", base},
		},
		"opens its volume /ours, which is no overlay of /middle any more": {Chain: []volume.Image{ours, {Name: "/lower"}}, Cut: true, Noted: []string{"/ours", "/middle", "/lower"}},
		"opens its volume /ours, which is no overlay of /lower any more":  {Chain: []volume.Image{ours}, Cut: true, Noted: []string{"/ours", "/lower"}},
		"a block job (active-commit) runs on disk root (vda)":             {Chain: []volume.Image{snapshot, ours}, Depth: 1, Job: "active-commit", Noted: []string{"/ours"}},
		"a backup of disk root (vda) of domain web runs":                  {Job: "backup"},
		"virsh blockjob web vda --abort":                                  {Job: "copy"},
	} {
		e.Target = "vda"
		if got := guard.ExplainExternal("web", "root", e); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
