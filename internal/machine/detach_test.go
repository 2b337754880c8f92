package machine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// refusingHost is a host with a running domain whose guest acknowledges each unplug except that of the device with that alias.
type refusingHost struct {
	oneDomain
	live, alias string
	err         error
}

func (h *refusingHost) LiveXML(context.Context, string) (string, error) { return h.live, nil }

func (h *refusingHost) Detach(_ context.Context, _, device string, _ func(string) (bool, error)) error {
	if strings.Contains(device, h.alias) {
		return h.err
	}
	return nil
}

func (h *refusingHost) ChangeMedium(context.Context, string, string) error { return nil }

// A device whose unplug was acknowledged is removed from the persistent definition, even if the next unplug fails: both change, or neither
// does.
func TestDetach_RemovesFromDefinition(t *testing.T) {
	disk := func(device, bus, name string) domainxml.Disk {
		return domainxml.Disk{Device: device, Bus: bus, Volume: volume.Volume{Images: []volume.Image{{
			Type: "file", Format: "raw", Name: "/" + name, AccessMode: volume.ReadShared,
		}}}}
	}
	all := domainxml.Machine{
		Name: "web", UUID: "6c1f0b3e-0d1c-4a7f-9f25-2f7f1f5f5f5f", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc",
		Boot: &domainxml.Boot{Kernel: "/vmlinuz"}, Metadata: domainxml.Metadata{Phase: domainxml.Ready}, Graphics: &domainxml.Graphics{Type: domainxml.VNC, Listen: "127.0.0.1"},
		Disks: map[string]domainxml.Disk{
			"a": disk(domainxml.Fixed, "virtio", "a"), "b": disk(domainxml.Fixed, "virtio", "b"), "cd": disk(domainxml.CDROM, "ide", "cd"),
			"stays": disk(domainxml.Fixed, "virtio", "stays"),
		},
		Interfaces: map[string]domainxml.Interface{"lan": {User: true, Model: "virtio", MAC: "52:54:00:00:00:01"}},
	}
	text, err := domainxml.Build(all)
	if err != nil {
		t.Fatal(err)
	}
	want := all
	want.Disks, want.Interfaces = map[string]domainxml.Disk{"stays": all.Disks["stays"], "cd": {Device: domainxml.CDROM, Bus: "ide"}}, nil
	for name, c := range map[string]struct {
		alias string
		err   error
		// disks are the disks in the persistent definition in the end; medium is set if the drive has one.
		disks  string
		medium bool
	}{
		"a disk is held":        {"ua-disk-b", host.ErrDetachRefused, "b cd stays", false},
		"an interface is held":  {"ua-net-lan", host.ErrDetachRefused, "cd stays", false},
		"the host went away":    {"ua-disk-b", &host.UnreachableError{Err: errors.New("cut")}, "a b cd stays", true},
		"the first one is held": {"ua-disk-a", host.ErrDetachRefused, "a b cd stays", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &refusingHost{oneDomain: oneDomain{stored: text}, live: text, alias: c.alias, err: c.err}
			live, err := domainxml.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := (Manager{log: quiet, host: h}).detach(t.Context(), "", live, want); !errors.Is(err, c.err) {
				t.Fatalf("that it is held is not said: %v", err)
			}
			is, err := domainxml.Parse(h.stored)
			if got := strings.Join(slices.Sorted(maps.Keys(is.Disks)), " "); err != nil || got != c.disks ||
				(len(is.Disks["cd"].Volume.Images) > 0) != c.medium || len(is.Interfaces) != 1 || is.Graphics == nil {
				t.Errorf("stored is %+v, %v", is, err)
			}
		})
	}
}

// The volume that replaces a disk is checked before the disk is unplugged, unless it only moves to another key of the machine.
func TestReplacements(t *testing.T) {
	disk := func(file string) domainxml.Disk {
		return domainxml.Disk{Device: domainxml.Fixed, Bus: "virtio", Volume: volume.Volume{
			Images: []volume.Image{{Type: "file", Format: "raw", Name: file, AccessMode: volume.WriteExclusive}},
		}}
	}
	is := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc", Disks: map[string]domainxml.Disk{"a": disk("/a"), "b": disk("/b"), "c": disk("/c"), "d": disk("/d"), "e": disk("/e")}}
	text, err := domainxml.Build(is)
	if err != nil {
		t.Fatal(err)
	}
	want := domainxml.Machine{Disks: map[string]domainxml.Disk{"a": disk("/b"), "b": disk("/a"), "c": disk("/new"), "d": {Device: domainxml.CDROM}, "e": disk("/e")}}
	live, err := domainxml.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := replacements(live, want, []string{"a", "b", "c", "d", "e", "f"}); !slices.Equal(got, []string{"c", "e"}) {
		t.Errorf("got %v", got)
	}
	gone := detached{disks: []string{"c", "d", "f"}}
	if err := gone.explain(want, errors.New("refused")); !strings.HasPrefix(err.Error(), "refused\n\nAlready unplugged: c. Apply again, ") {
		t.Errorf("got %v", err)
	}
	if err := (detached{disks: []string{"f"}}).explain(want, host.ErrDetachRefused); err != host.ErrDetachRefused { //nolint:errorlint // nothing is added
		t.Errorf("got %v", err)
	}
}
