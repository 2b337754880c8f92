package virtualmachine

import (
	"context"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// leftOver is a host with the domain of an interrupted creation.
type leftOver struct {
	stubborn
	active bool
}

func (h *leftOver) LookupByName(context.Context, string) (string, error) { return "found", nil }

func (h *leftOver) State(context.Context, string) (host.State, error) {
	return host.State{Active: h.active, Responsive: true}, nil
}

func (h *leftOver) IsPersistent(context.Context, string) (bool, error) { return true, nil }

func (h *leftOver) Autostart(context.Context, string) (bool, error) { return false, nil }

// define reports that the guest of a resumed creation runs: then it is not removed after a failure, since it may have run for long.
func TestVirtualMachine_ResumedCreateReportsRunning(t *testing.T) {
	want := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Disks: map[string]domainxml.Disk{},
		Metadata: domainxml.Metadata{Owner: "prod", Phase: domainxml.Creating},
	}
	text, err := domainxml.Build(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, active := range []bool{true, false} {
		h := &leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, active}
		id, runs, err := manager{host: h, owner: "prod"}.define(t.Context(), want)
		if id != "found" || runs != active || err != nil {
			t.Errorf("active %v: %s runs %v, %v", active, id, runs, err)
		}
	}
}
