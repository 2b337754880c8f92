package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func folder(name string, mode volume.AccessMode, binding string) volume.Image {
	return volume.Image{Type: "dir", Format: "dir", Name: name, AccessMode: mode, Hosts: []string{"a"}, Binding: binding}
}

// sharer is a domain that shares a folder as its filesystem data, and has a disk of that key.
func sharer(t *testing.T, id, owner string, i volume.Image) host.Domain {
	t.Helper()
	f := domainxml.Filesystem{Source: i.Name, Target: "data", Driver: domainxml.NineP}
	if i.Binding != "" {
		f.Volume = volume.Volume{Images: []volume.Image{i}}
	}
	text, err := domainxml.Build(domainxml.Machine{
		Name: "db", UUID: id, VCPUs: 1, Memory: 1024, DomainType: "qemu",
		Metadata: domainxml.Metadata{Owner: owner, Phase: domainxml.Ready}, Filesystems: map[string]domainxml.Filesystem{"data": f},
		Disks: map[string]domainxml.Disk{"data": {
			Volume: volume.Volume{Images: []volume.Image{image("/ssd/root", "r")}}, Device: domainxml.Fixed, Bus: "virtio",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return host.Domain{Name: "db", UUID: id, Stored: text}
}

// A bound folder excludes other machines as a disk does, also those that share a folder above it or have a disk in it.
func TestAcquire_Folders(t *testing.T) {
	claimed := func(mode volume.AccessMode) volume.Image { return folder("/mnt/claim", mode, "id/i/vms/data") }
	disk := of(volume.Image{
		Type: "file", Format: "raw", Name: "/mnt/claim/disk.img", AccessMode: volume.WriteExclusive, Hosts: []string{"a"},
	}, "other/i/vms/data")
	foreign := host.Domain{Name: "theirs", UUID: high, Stored: `<domain><name>theirs</name><devices><filesystem type='mount'>` +
		`<source dir='/mnt/claim/sub'/><target dir='tag'/></filesystem></devices></domain>`}
	for name, c := range map[string]struct {
		want   volume.Image
		other  host.Domain
		refuse string
	}{
		"two writers that share":     {claimed(volume.WriteShared), sharer(t, high, "x", claimed(volume.WriteShared)), ""},
		"another folder":             {claimed(volume.WriteExclusive), sharer(t, high, "x", folder("/mnt/claim2", volume.WriteExclusive, "b")), ""},
		"an exclusive one":           {claimed(volume.WriteExclusive), live(sharer(t, high, "x", claimed(volume.WriteExclusive))), "domain db on host a runs with it as its filesystem data (write-exclusive). Take the filesystem away from one of the two (the other is of the owner x)"},
		"one that is off":            {claimed(volume.WriteExclusive), sharer(t, high, "x", claimed(volume.WriteExclusive)), "has it as its filesystem data"},
		"a folder above it":          {claimed(volume.WriteExclusive), sharer(t, high, "x", folder("/mnt", volume.WriteShared, "")), "has /mnt as its filesystem data (write-shared)"},
		"a folder above one to read": {claimed(volume.ReadShared), sharer(t, high, "x", folder("/mnt", volume.WriteShared, "")), "(write-shared)"},
		"one in it by hand":          {claimed(volume.WriteExclusive), foreign, "has /mnt/claim/sub as its filesystem tag (write-shared). That domain is not virtclaim's. Detach the filesystem there (virsh edit theirs)"},
		"a disk in it":               {claimed(volume.WriteExclusive), user(t, "db", high, "x", "ready", disk), "has /mnt/claim/disk.img as its disk data"},
		"a disk in a folder":         {disk, sharer(t, high, "x", claimed(volume.WriteExclusive)), "has /mnt/claim as its filesystem data"},
		"a disk in a plain folder":   {disk, sharer(t, high, "x", folder("/mnt", volume.WriteShared, "")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.set("a", c.other)
				_, err := guard.Acquire(t.Context(), guard.Request{
					Host: "a", Name: "web", UUID: mine, Owner: "me", Images: []volume.Image{c.want}, Hosts: w.host,
				})
				if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse)) {
					t.Errorf("got %v, want %q", err, c.refuse)
				}
			})
		})
	}
}

// shareHost is a host from whose stored definitions filesystems are removed.
type shareHost struct{ fakeHost }

func (h *shareHost) DetachStored(_ context.Context, uuid, device string) error {
	if !strings.HasPrefix(device, "<filesystem") {
		return errors.New("no filesystem: " + device)
	}
	h.done = append(h.done, "forget "+uuid)
	return nil
}

// A running guest keeps its filesystems; a machine that is off loses the folder of a destroyed binding, and no disk of the same key.
func TestDetach_Folders(t *testing.T) {
	claimed := folder("/mnt/claim", volume.WriteExclusive, "id/i/vms/data")
	off := sharer(t, high, "me", claimed)
	for name, c := range map[string]struct {
		domain host.Domain
		done   int
		refuse string
	}{
		"off":              {off, 1, ""},
		"running":          {live(off), 0, "has /mnt/claim as its filesystem data, which a running guest can't lose. Take it out of the machine's filesystems"},
		"of another owner": {sharer(t, high, "x", claimed), 0, "that domain is not this configuration's. Detach it there (virsh edit db)"},
		"saved with it":    {host.Domain{Name: "db", UUID: high, Saved: off.Stored, Stored: off.Stored}, 0, "which its managed save goes on with"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &shareHost{fakeHost{domains: []host.Domain{c.domain}}}
			err := detach(t, map[string]guard.Host{"a": h}, claimed, []string{"me"})
			if (err != nil) != (c.refuse != "") || err != nil && !strings.Contains(err.Error(), c.refuse) || len(h.done) != c.done {
				t.Errorf("got %v, and %v was done; want %q", err, h.done, c.refuse)
			}
		})
	}
}
