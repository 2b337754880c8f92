package domainxml

import (
	"reflect"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func boundFolder(name string, mode volume.AccessMode) volume.Volume {
	capacity := int64(1 << 30)
	return volume.Volume{Capacity: &capacity, Images: []volume.Image{{
		Type: "dir", Format: "dir", Name: name, AccessMode: mode, Hosts: []string{"a", "b"}, Binding: "id/0a1b2c3d/vms/data",
	}}}
}

func withFolders(all map[string]Filesystem) Machine {
	return Machine{
		Name: "web", UUID: "2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0", VCPUs: 1, Memory: 1024, DomainType: "qemu", Filesystems: all,
		Metadata: Metadata{Phase: Ready},
	}
}

func claimed(mode volume.AccessMode, readOnly bool) Filesystem {
	return Filesystem{Source: "/mnt/claim", Target: "data", Driver: NineP, ReadOnly: readOnly, Volume: boundFolder("/mnt/claim", mode)}
}

func updated(t *testing.T, text string, want Machine) string {
	t.Helper()
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = d.Update(want); err != nil {
		t.Fatal(err)
	}
	return text
}

// The folder of a binding is read back as it was defined; a device that was changed by hand is no such folder.
func TestFilesystem_RecordsBinding(t *testing.T) {
	want := withFolders(map[string]Filesystem{
		"data": claimed(volume.WriteExclusive, true), "plain": {Source: "/srv", Target: "plain", Driver: VirtioFS},
		"read": claimed(volume.ReadShared, true),
	})
	text := build(t, want)
	for _, from := range []string{text, updated(t, text, want)} {
		if is, err := Parse(from); err != nil || !reflect.DeepEqual(is.Filesystems, want.Filesystems) {
			t.Errorf("got %+v, %v", is.Filesystems, err)
		}
	}
	is, err := Parse(strings.ReplaceAll(text, `dir="/mnt/claim"`, `dir="/mnt/other"`))
	if f := is.Filesystems["data"]; err != nil || f.Source != "/mnt/other" || len(f.Volume.Images) > 0 {
		t.Errorf("another folder is %+v, %v", f, err)
	}
	is, err = Parse(strings.ReplaceAll(text, "<readonly></readonly>", ""))
	if len(is.Filesystems["read"].Volume.Images) > 0 || len(is.Filesystems["data"].Volume.Images) == 0 || err != nil {
		t.Errorf("what was made writable is %+v, %v", is.Filesystems, err)
	}
	is, err = Parse(build(t, want.WithTentative(nil, []string{"data"})))
	if _, has := is.WithoutTentative().Filesystems["data"]; err != nil || has || !is.Filesystems["data"].Tentative || len(is.Filesystems) != 3 {
		t.Errorf("what is tentative is %+v, %v", is.Filesystems, err)
	}
}

// A folder is attached under the mode of its binding, and one of no binding as what anyone may share.
func TestDomain_AttachedFolders(t *testing.T) {
	text := build(t, withFolders(map[string]Filesystem{
		"data": claimed(volume.WriteExclusive, false), "plain": {Source: "/srv", Target: "vda", Driver: VirtioFS},
		"read": {Source: "/usr", Target: "read", Driver: NineP, ReadOnly: true},
	}))
	text = strings.Replace(text, "</devices>", `<filesystem type="file"><source file="/a.img"/><target dir="/"/></filesystem></devices>`, 1)
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(name string, mode volume.AccessMode) volume.Volume {
		return volume.Volume{Images: []volume.Image{{Type: "dir", Format: "dir", Name: name, AccessMode: mode}}}
	}
	want := []Attached{
		{Key: "data", Target: "data", Volume: boundFolder("/mnt/claim", volume.WriteExclusive)},
		{Key: "plain", Target: "vda", Volume: plain("/srv", volume.WriteShared)},
		{Key: "read", Target: "read", ReadOnly: true, Volume: plain("/usr", volume.ReadShared)},
	}
	if is := d.Attached(); !reflect.DeepEqual(is, want) {
		t.Errorf("got %+v", is)
	}
	if element, ok, err := d.FilesystemDevice("plain"); err != nil || !ok || !strings.Contains(element, "/srv") {
		t.Errorf("got %q, %v, %v", element, ok, err)
	}
}

// The guard is asked about new folders and modes; another instance of a binding needs no restart.
func TestChangedFolders(t *testing.T) {
	one := func(f Filesystem) Machine { return withFolders(map[string]Filesystem{"data": f}) }
	exclusive, shared := claimed(volume.WriteExclusive, false), claimed(volume.WriteShared, false)
	again, moved := claimed(volume.WriteExclusive, false), claimed(volume.WriteExclusive, false)
	again.Volume.Images[0].Binding = "id/ffffffff/vms/data"
	moved.Source, moved.Volume = "/mnt/other", boundFolder("/mnt/other", volume.WriteExclusive)
	plain := Filesystem{Source: "/mnt/claim", Target: "data", Driver: NineP}
	for name, c := range map[string]struct {
		was, want         Machine
		changed, restarts bool
		reverted          map[string]Filesystem
	}{
		"a new one":       {withFolders(nil), one(exclusive), true, true, map[string]Filesystem{}},
		"the same":        {one(exclusive), one(exclusive), false, false, one(exclusive).Filesystems},
		"a new mode":      {one(exclusive), one(shared), true, true, one(exclusive).Filesystems},
		"a new instance":  {one(exclusive), one(again), false, false, one(exclusive).Filesystems},
		"another folder":  {one(exclusive), one(moved), true, true, map[string]Filesystem{}},
		"a plain one":     {one(exclusive), one(plain), false, true, one(exclusive).Filesystems},
		"what was plain":  {one(plain), one(exclusive), true, true, one(plain).Filesystems},
		"none any longer": {one(exclusive), withFolders(nil), false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ChangedFolders(c.was, c.want); (len(got) > 0) != c.changed {
				t.Errorf("changed are %v", got)
			}
			live, err := Read(build(t, c.was))
			if err != nil {
				t.Fatal(err)
			}
			if pending, err := live.Pending(c.want); err != nil || (len(pending) > 0) != c.restarts {
				t.Errorf("pending are %v, %v", pending, err)
			}
			if !c.changed {
				return
			}
			if is := c.want.RevertFolders(c.was, []string{"data"}).Filesystems; !reflect.DeepEqual(is, c.reverted) {
				t.Errorf("reverted is %+v", is)
			}
		})
	}
}
