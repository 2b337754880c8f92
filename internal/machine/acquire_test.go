package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// oneDomain is a host with one domain that is off.
type oneDomain struct {
	Host
	stored string
}

func (h *oneDomain) StoredXML(context.Context, string) (string, error) { return h.stored, nil }

func (h *oneDomain) Define(_ context.Context, text string) (string, error) {
	h.stored = text
	return "", nil
}

// The empty drive of a domain that was not created by virtclaim gets a medium that the machine may not have.
func TestVirtualMachine_ImportedDriveStaysEmpty(t *testing.T) {
	const byHand = `<domain type='qemu'><name>theirs</name><memory unit='KiB'>1024</memory><devices>` +
		`<disk type='file' device='cdrom'><target dev='hda' bus='ide'/></disk></devices></domain>`
	theirs, err := domainxml.Read(byHand)
	if err != nil {
		t.Fatal(err)
	}
	was, err := theirs.Machine()
	if err != nil {
		t.Fatal(err)
	}
	want := was
	want.Metadata.Phase = domainxml.Ready
	want.Disks = map[string]domainxml.Disk{"hda": {
		Volume: volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: "/seed", AccessMode: volume.ReadShared}}},
		Device: domainxml.CDROM, Bus: "ide",
	}}
	stored, err := theirs.Update(want.WithTentative([]string{"hda"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	h, refused := &oneDomain{stored: stored}, errors.New("refused")
	if err := (Manager{log: quiet, host: h}).revertDisks(t.Context(), "", was, want, []string{"hda"}, false, refused); !errors.Is(err, refused) {
		t.Error(err)
	}
	if strings.Contains(h.stored, "/seed") || !strings.Contains(h.stored, `dev="hda"`) {
		t.Errorf("left is %s", h.stored)
	}
}
