package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	firstID  = "11111111-1111-4111-8111-111111111111"
	secondID = "22222222-2222-4222-8222-222222222222"
)

// withFiles is a host with a running domain and raw volumes, by path, whose identities are in the ledger.
type withFiles struct {
	leftOver
	files map[string]string
	err   error
	// locked is set if a QEMU writes to the present file of that name.
	locked bool
}

func (h *withFiles) Opens(_ context.Context, xml string) error {
	if h.locked && !strings.Contains(xml, "<shareable>") {
		return errors.New("refused")
	}
	return nil
}

func (h *withFiles) Domains(context.Context) ([]host.Domain, error) { return nil, h.err }

func (h *withFiles) Labels(context.Context) ([]string, error) { return nil, h.err }

func (h *withFiles) File(context.Context, string, int) (host.File, error) { return host.File{}, h.err }

func (h *withFiles) VolumeAt(_ context.Context, path string) (host.StorageVolume, error) {
	if _, has := h.files[path]; !has {
		return host.StorageVolume{}, errors.Join(host.ErrNotFound, h.err)
	}
	return host.StorageVolume{Pool: "ssd", Name: path, Path: path, Type: "file"}, h.err
}

func (h *withFiles) SecretOfVolume(_ context.Context, usage string) (string, error) {
	_, path, _ := strings.Cut(usage, "ssd/")
	if h.files[path] == "" {
		return "", host.ErrNotFound
	}
	return h.files[path], nil
}

func (h *withFiles) SecretXML(context.Context, string) (string, error) { return "", host.ErrNotFound }

// What a guest has written since its file was copied or deleted is in no other file: the file is not exchanged for the copy or a new one.
func TestCheckOpenFiles(t *testing.T) {
	file := func(path, id string) volume.Volume {
		return volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: path, Generation: id, AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}}}
	}
	machine := func(bus string, v volume.Volume) domainxml.Machine {
		return domainxml.Machine{
			Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Metadata: domainxml.Metadata{Phase: domainxml.Ready}, Boot: &domainxml.Boot{Kernel: "/vmlinuz"},
			Disks: map[string]domainxml.Disk{"data": {Volume: v, Device: domainxml.Fixed, Bus: bus}},
		}
	}
	old, moved, remade := file("/old", firstID), file("/new", firstID), file("/old", secondID)
	read, unnoted, claimed := file("/old", firstID), file("/old", ""), file("/old", "")
	read.Images[0].AccessMode = volume.ReadShared
	claimed.Images[0].Binding = "binding"
	const isCopy, isGone = "which is a copy of that file", "which is not a volume of a storage pool any more"
	const isOther = "and that name is another file's now, or none's"
	for name, c := range map[string]struct {
		bus      string
		was      volume.Volume
		want     volume.Volume
		files    map[string]string
		restarts bool
		off      bool
		locked   bool
		refuse   string
	}{
		"the same":                             {want: old, files: map[string]string{"/old": firstID}},
		"the same, which is gone":              {want: old},
		"the same, which is gone, restarted":   {want: old, restarts: true, refuse: isGone},
		"moved":                                {want: moved, files: map[string]string{"/new": firstID}, refuse: isCopy},
		"moved, restarted":                     {want: moved, files: map[string]string{"/old": firstID, "/new": firstID}, restarts: true, refuse: isCopy},
		"moved, on SATA":                       {bus: "sata", want: moved, files: map[string]string{"/new": firstID}, refuse: isCopy},
		"moved, off":                           {want: moved, off: true},
		"recreated":                            {want: remade, files: map[string]string{"/old": secondID}, refuse: isGone},
		"recreated, by hand":                   {want: remade, files: map[string]string{"/old": ""}, refuse: isGone},
		"recreated, with consent":              {want: remade, files: map[string]string{"/old": secondID}, restarts: true},
		"recreated, on SATA":                   {bus: "sata", want: remade, files: map[string]string{"/old": secondID}},
		"recreated, on SATA, with consent":     {bus: "sata", want: remade, files: map[string]string{"/old": secondID}, restarts: true},
		"recreated in another folder":          {want: file("/new", secondID), files: map[string]string{"/new": secondID}, refuse: isGone},
		"another one, and the first is there":  {want: file("/new", secondID), files: map[string]string{"/old": firstID, "/new": secondID}, locked: true},
		"another one, and the first is a copy": {want: file("/new", secondID), files: map[string]string{"/old": firstID, "/new": secondID}, refuse: isOther},
		"the same, restarted":                  {want: old, files: map[string]string{"/old": firstID}, restarts: true, locked: true},
		"a file put back, restarted":           {want: old, files: map[string]string{"/old": firstID}, restarts: true, refuse: isOther},
		"a file put back, and taken away":      {files: map[string]string{"/old": firstID}, restarts: true, refuse: isOther},
		"a file put back, on SATA, taken away": {bus: "sata", files: map[string]string{"/old": firstID}, refuse: isOther},
		"taken away on SATA":                   {bus: "sata", files: map[string]string{"/old": firstID}, locked: true},
		"taken away on SATA while it is gone":  {bus: "sata"},
		"attached by hand, restarted":          {was: unnoted, want: moved, restarts: true},
		"taken away while it is gone":          {refuse: isGone},
		"read only, and recreated":             {was: read, want: remade, files: map[string]string{"/old": secondID}},
		"not noted, and open":                  {was: unnoted, want: remade, locked: true},
		"not noted, and another one":           {was: unnoted, want: remade, refuse: isOther},
		"not noted, another one, restarted":    {was: unnoted, want: remade, restarts: true, refuse: isOther},
		"of a claim, restarted":                {was: claimed, want: claimed, restarts: true, locked: true},
		"of a claim, replaced":                 {was: claimed, want: claimed},
		"of a claim, replaced, restarted":      {was: claimed, want: claimed, restarts: true, refuse: isOther},
		"of a claim, replaced, for a disk":     {was: claimed, want: moved, refuse: isOther},
	} {
		t.Run(name, func(t *testing.T) {
			if c.bus == "" {
				c.bus = "virtio"
			}
			if len(c.was.Images) == 0 {
				c.was = old
			}
			want := machine(c.bus, c.want)
			if len(c.want.Images) == 0 {
				want.Disks = nil
			}
			text, err := domainxml.Build(machine(c.bus, c.was))
			if err != nil {
				t.Fatal(err)
			}
			h := &withFiles{leftOver: leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, !c.off}, files: c.files, locked: c.locked}
			at, err := Manager{log: quiet, host: h}.see(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			err = Manager{log: quiet, host: h}.checkOpenFiles(t.Context(), "", at.live, want, c.restarts)
			if errors.Is(err, errOpen) != (c.refuse != "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
			h.err = errors.New("no answer")
			if err := (Manager{log: quiet, host: h}).checkOpenFiles(t.Context(), "", at.live, want, c.restarts); (c.refuse == isGone || c.refuse == isOther) && err == nil {
				t.Error("a host that does not tell was believed")
			}
		})
	}
}

// overMaster is a host with a running domain over the file of a binding, which was modified at that time, or is gone.
type overMaster struct {
	withFiles
	modified string
}

func (h *overMaster) File(context.Context, string, int) (host.File, error) {
	if h.modified == "" {
		return host.File{}, host.ErrNotFound
	}
	return host.File{Length: 1, Modified: h.modified}, nil
}

func (h *overMaster) SecretOfVolume(context.Context, string) (string, error) { return secondID, nil }

func (h *overMaster) SecretXML(context.Context, string) (string, error) {
	return "<secret><description>/golden: 1 bytes, modified at 100.5</description></secret>", nil
}

// A machine can be destroyed whatever was written to its master. Only a master that is gone may have its only copy in the guest's QEMU.
func TestCheckExchanged_Masters(t *testing.T) {
	text, err := domainxml.Build(domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
		Disks: map[string]domainxml.Disk{"root": {Device: domainxml.Fixed, Bus: "virtio", Volume: volume.Volume{Images: []volume.Image{
			{Type: "file", Format: "qcow2", Name: "/over", Generation: firstID, AccessMode: volume.WriteExclusive},
			{Type: "file", Format: "raw", Name: "/golden", Binding: "binding", AccessMode: volume.ReadShared},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	live, err := domainxml.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		modified string
		// destroy and update are whether a master stops these.
		destroy, update bool
	}{
		"as it was":   {"100.5", false, false},
		"overwritten": {"200.5", false, true},
		"gone":        {"", true, true},
	} {
		h := &overMaster{withFiles{leftOver: leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, true}}, c.modified}
		m := Manager{log: quiet, host: h}
		if err := m.checkExchanged(t.Context(), "", live, "web"); errors.Is(err, content.ErrMasterChanged) != c.destroy || err != nil && !c.destroy {
			t.Errorf("%s: a destroy: %v", name, err)
		}
		if err := m.checkOpenFiles(t.Context(), "", live, domainxml.Machine{Name: "web"}, true); errors.Is(err, content.ErrMasterChanged) != c.update {
			t.Errorf("%s: an update that takes the disk away: %v", name, err)
		}
	}
}
