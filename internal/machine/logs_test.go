package machine

import (
	"context"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// stocked is a host with a storage pool, and with a foreign domain beside its own.
type stocked struct {
	leftOver
	absent bool
	made   string
}

func (h *stocked) LookupByName(context.Context, string) (string, error) {
	if h.absent {
		return "", host.ErrNotFound
	}
	return "found", nil
}

func (h *stocked) Define(ctx context.Context, text string) (string, error) {
	h.made = text
	return h.leftOver.Define(ctx, text)
}

func (h *stocked) SavedXML(context.Context, string) (string, error) { return "", nil }

func (h *stocked) Stop(context.Context, string, host.Shutdown) error { return nil }

func (h *stocked) VolumeAt(_ context.Context, path string) (host.StorageVolume, error) {
	if path == "/pool/disk" || path == "/pool/web.log" {
		return host.StorageVolume{Pool: "ssd", Name: strings.TrimPrefix(path, "/pool/"), Path: path, Format: "raw"}, nil
	}
	return host.StorageVolume{}, host.ErrNotFound
}

func (h *stocked) Domains(context.Context) ([]host.Domain, error) {
	return []host.Domain{{Name: "theirs", UUID: "u", Stored: `<domain type='qemu'><name>theirs</name><devices><disk type='file' device='disk'>` +
		`<source file='/mnt//theirs.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>`}}, nil
}

// A guest's output is not written to a disk: a log is no volume of a storage pool, and no disk of any domain. A log that the machine
// already has is accepted.
func TestCheckLogs_NoStorage(t *testing.T) {
	machine := func(serial, console string) domainxml.Machine {
		return domainxml.Machine{
			Name: "web", UUID: "6c1f0b3e-0d1c-4a7f-9f25-2f7f1f5f5f5f", VCPUs: 1, Memory: 65536, DomainType: "qemu",
			Serial: &domainxml.Serial{LogFile: serial}, Console: &domainxml.Console{LogFile: console},
			Disks: map[string]domainxml.Disk{"data": {
				Volume: volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: "/mnt/own.img", Hosts: []string{"host-a"}}}},
				Bus:    "virtio",
			}},
			Metadata: domainxml.Metadata{Owner: "prod", Phase: domainxml.Creating},
		}
	}
	for _, row := range []struct{ has, serial, console, refused string }{
		{"", "", "", ""},
		{"", "/var/log/web.log", "/dev/null", ""},
		{"", "/pool//disk", "", "serial.log_file is /pool//disk, which is the volume disk of the storage pool ssd"},
		{"", "", "/pool/disk", "console.log_file is /pool/disk, which is the volume disk"},
		{"", "/mnt/theirs.img", "", "which is disk vda of the domain theirs"},
		{"", "/mnt/./own.img", "", "which is the machine's own disk data"},
		{"", "/pool/web.log", "", "virsh pool-refresh ssd"},
		{"/pool/web.log", "/pool/web.log", "", ""},
		{"/pool/web.log", "", "/pool/web.log", ""},
		{"/pool/web.log", "/pool/disk", "", "the volume disk"},
	} {
		stored, err := domainxml.Build(machine(row.has, ""))
		if err != nil {
			t.Fatal(err)
		}
		want := machine(row.serial, row.console)
		h := func(absent bool) *stocked {
			return &stocked{leftOver: leftOver{stubborn{oneDomain: oneDomain{stored: stored}, live: stored}, false}, absent: absent}
		}
		check := func(what string, h *stocked, err error) {
			refused := err != nil && strings.Contains(err.Error(), row.refused) && h.made == ""
			if row.refused == "" && err != nil || row.refused != "" && !refused {
				t.Errorf("%s: %+v: %v, made %q", what, row, err, h.made)
			}
		}
		if row.has == "" {
			made := h(true)
			_, _, err = Manager{log: quiet, host: made, key: "host-a", owner: "prod"}.Define(t.Context(), want)
			check("create", made, err)
		}
		l := Manager{log: quiet, host: h(false), key: "host-a", owner: "prod"}
		check("look", h(false), l.checkLogs(t.Context(), machine(row.has, ""), want))
		if row.refused != "" {
			for what, try := range map[string]func(Manager) error{
				"go on":  func(l Manager) error { _, _, err := l.Define(t.Context(), want); return err },
				"change": func(l Manager) error { _, _, _, err := l.Update(t.Context(), want.UUID, want, Power{}); return err },
			} {
				there := h(false)
				check(what, there, try(Manager{log: quiet, host: there, key: "host-a", owner: "prod"}))
			}
		}
	}
}
