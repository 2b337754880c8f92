package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// silent is a host that does not answer what a path is.
type silent struct {
	Host
	err error
}

func (h silent) VolumeAt(context.Context, string) (host.StorageVolume, error) {
	return host.StorageVolume{}, h.err
}

// A host that does not answer says nothing about its disks.
func TestManager_SilentHostIsNoContradiction(t *testing.T) {
	gone := &host.UnreachableError{Err: errors.New("connection reset")}
	m := Manager{log: quiet, host: silent{err: gone}}
	want := domainxml.Machine{Disks: map[string]domainxml.Disk{"root": {Volume: volume.Volume{Images: []volume.Image{
		{Type: "file", Format: "qcow2", Name: "/ssd/web", Generation: "one", AccessMode: volume.WriteExclusive},
	}}}}}
	for what, err := range map[string]error{
		"backing": m.checkBacking(t.Context(), nil, want), "recognition": m.recognize(t.Context(), want, []string{"root"}),
	} {
		if !errors.Is(err, gone) || errors.Is(err, errExternal) || strings.Contains(err.Error(), "became of the disk") || !strings.Contains(err.Error(), "disk root") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
