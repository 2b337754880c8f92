package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// answering is a host that lists its domain.
type answering struct{ h *busy }

func (a answering) Domains(context.Context) ([]host.Domain, error) {
	return []host.Domain{{Name: "web", UUID: folderUUID, Stored: a.h.stored}}, nil
}

func (answering) Pool(context.Context, string) (host.Pool, error) { return host.Pool{}, host.ErrNoPool }

func (answering) Volume(context.Context, string, string) (host.StorageVolume, error) {
	return host.StorageVolume{}, host.ErrNotFound
}

func (answering) Await(context.Context, string, func(context.Context) (bool, error)) error {
	return nil
}

const folderUUID = "6c1f0b3e-0d1c-4a7f-9f25-2f7f1f5f5f5f"

// A bound folder that an update adds is published before all hosts are asked about it. If it is refused, the definition has the former
// filesystems again, so that no later start of the domain opens the folder.
func TestVirtualMachine_FoldersAreAcquired(t *testing.T) {
	plain := map[string]domainxml.Filesystem{"data": {Source: "/srv", Target: "data", Driver: domainxml.NineP}}
	was := domainxml.Machine{
		Name: "web", UUID: folderUUID, VCPUs: 1, MaxVCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc", Disks: map[string]domainxml.Disk{},
		Metadata: domainxml.Metadata{Phase: domainxml.Ready}, Filesystems: plain,
	}
	want := was
	want.Filesystems = map[string]domainxml.Filesystem{"data": {
		Source: "/mnt/claim", Target: "data", Driver: domainxml.NineP,
		Volume: volume.Volume{Images: []volume.Image{{
			Type: "dir", Format: "dir", Name: "/mnt/claim", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}, Binding: "id/i/vms/data",
		}}},
	}}
	text, err := domainxml.Build(was)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("the other host is down")
	for name, c := range map[string]struct {
		active bool
		err    error
	}{
		"running": {true, nil}, "off": {false, nil}, "running, refused": {true, refused}, "off, refused": {false, refused},
	} {
		t.Run(name, func(t *testing.T) {
			h := &busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, c.active}}
			asked := 0
			m := Manager{log: quiet, host: h, key: "a", hosts: func(string) (guard.Waiter, error) {
				asked++
				if !strings.Contains(h.stored, `<filesystem key="data" tentative="true">`) {
					t.Errorf("published is %s", h.stored)
				}
				return answering{h}, c.err
			}}
			_, pending, _, err := m.Update(t.Context(), folderUUID, want, Power{On: c.active})
			if !errors.Is(err, c.err) || asked == 0 || err == nil && c.active && strings.Join(pending, " ") != "filesystems" {
				t.Errorf("got %v; pending are %v; %d hosts were asked", err, pending, asked)
			}
			is, err := domainxml.Parse(h.stored)
			if err != nil {
				t.Fatal(err)
			}
			f := is.Filesystems["data"]
			if c.err != nil && (f.Source != "/srv" || len(f.Volume.Images) > 0) || c.err == nil && (len(f.Volume.Images) != 1 || f.Tentative) {
				t.Errorf("stored is %+v", f)
			}
		})
	}
}

// A machine that starts asks about all its bound folders, also about those that it had before.
func TestDevicesToCheck_Folders(t *testing.T) {
	bound := domainxml.Filesystem{Volume: volume.Volume{Images: []volume.Image{{Type: "dir"}}}}
	want := domainxml.Machine{Filesystems: map[string]domainxml.Filesystem{"a": bound, "b": bound, "plain": {}}}
	if got := devicesToCheck(taken{folders: []string{"b"}}, want, true); strings.Join(got.folders, "") != "ab" {
		t.Errorf("a start asks about %v", got.folders)
	}
	if got := devicesToCheck(taken{folders: []string{"b"}}, want, false); strings.Join(got.folders, "") != "b" {
		t.Errorf("an update asks about %v", got.folders)
	}
}
