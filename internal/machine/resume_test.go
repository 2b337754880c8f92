package machine

import (
	"context"
	"errors"
	"fmt"
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

// Define reports that the guest of a resumed creation runs: then it is not removed after a failure, since it may have run for long.
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
		id, runs, err := Manager{log: quiet, host: h, owner: "prod"}.Define(t.Context(), want)
		if id != "found" || runs != active || err != nil {
			t.Errorf("active %v: %s runs %v, %v", active, id, runs, err)
		}
	}
}

// A machine of the same owner may be destroyed by this apply, as the next instance of a count, so that its name is waited for. That of
// others is not.
func TestDefine_TakenName(t *testing.T) {
	for name, c := range map[string]struct {
		is    domainxml.Metadata
		owner string
		waits bool
	}{
		"of the same owner":     {domainxml.Metadata{Owner: "prod", Phase: domainxml.Ready}, "prod", true},
		"of another owner":      {domainxml.Metadata{Owner: "test", Phase: domainxml.Ready}, "prod", false},
		"of no owner":           {domainxml.Metadata{Phase: domainxml.Ready}, "", false},
		"not made by virtclaim": {domainxml.Metadata{}, "prod", false},
	} {
		want := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Metadata: c.is}
		text, err := domainxml.Build(want)
		if err != nil {
			t.Fatal(err)
		}
		h := &leftOver{stubborn: stubborn{oneDomain: oneDomain{stored: text}}}
		_, _, err = Manager{log: quiet, host: h, owner: c.owner}.Define(t.Context(), want)
		if err == nil || errors.Is(err, ErrNameTaken) != c.waits || h.stored != text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// destroyed is a host whose domain is destroyed right after it was looked up.
type destroyed struct {
	leftOver
	looked bool
}

func (h *destroyed) LookupByName(context.Context, string) (string, error) {
	if h.looked {
		return "", host.ErrNotFound
	}
	h.looked = true
	return "found", nil
}

func (h *destroyed) StoredXML(context.Context, string) (string, error) { return "", host.ErrNotFound }

func TestDefine_DestroyedMeanwhile(t *testing.T) {
	h := &destroyed{}
	want := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu"}
	if _, _, err := (Manager{log: quiet, host: h, owner: "prod"}).Define(t.Context(), want); err != nil || h.stored == "" {
		t.Errorf("stored is %q: %v", h.stored, err)
	}
}

// running is a host whose domain is active.
type running struct{ leftOver }

func (h *running) Start(context.Context, string) error {
	return fmt.Errorf("start it: %w", host.ErrActive)
}

func (h *running) SavedXML(context.Context, string) (string, error) { return "", nil }

func (h *running) Leases(context.Context) (map[host.Lease]int64, error) {
	return map[host.Lease]int64{{IP: "192.0.2.1"}: 1}, nil
}

// A domain that runs is as good as started, and its leases are not those of a run before.
func TestManager_StartOfActiveDomain(t *testing.T) {
	m := Manager{log: quiet, host: &running{}, Leases: map[host.Lease]int64{}}
	if err := m.start(t.Context(), "found"); err != nil || len(m.Leases) > 0 {
		t.Errorf("%v, leases %v", err, m.Leases)
	}
}
