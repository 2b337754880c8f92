package machine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// counted is a host with one domain that counts how often it is asked.
type counted struct {
	busy
	asked map[string]int
}

func (h *counted) State(context.Context, string) (host.State, error) {
	h.asked["state"]++
	return host.State{Active: h.active, Responsive: true, Reason: "shutdown"}, nil
}

func (h *counted) StoredXML(ctx context.Context, uuid string) (string, error) {
	h.asked["stored"]++
	return h.busy.StoredXML(ctx, uuid)
}

func (h *counted) LiveXML(ctx context.Context, uuid string) (string, error) {
	h.asked["live"]++
	return h.busy.LiveXML(ctx, uuid)
}

func (h *counted) IsPersistent(ctx context.Context, uuid string) (bool, error) {
	h.asked["persistent"]++
	return h.busy.IsPersistent(ctx, uuid)
}

func (h *counted) Stop(_ context.Context, _ string, how host.Shutdown) error {
	if how.Agent {
		h.asked["agent"]++
	}
	h.active = false
	return nil
}

func (h *counted) Undefine(context.Context, string) error { return nil }

// An operation reads a domain at its beginning, and again only what it is about to define or has changed.
func TestVirtualMachine_DomainIsReadOnce(t *testing.T) {
	was := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc", Disks: map[string]domainxml.Disk{}, Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	text, err := domainxml.Build(was)
	if err != nil {
		t.Fatal(err)
	}
	update := func(m Manager) error {
		want := was
		want.Title = "other"
		_, _, _, err := m.Update(t.Context(), "", want, Power{On: true})
		return err
	}
	read := func(m Manager) error {
		_, at, err := m.Observe(t.Context(), "")
		if err == nil {
			_, err = m.Health(t.Context(), "", at)
		}
		return err
	}
	destroy := func(m Manager) error { return m.Delete(t.Context(), "", was, true) }
	for name, c := range map[string]struct {
		do     func(Manager) error
		active bool
		want   map[string]int
	}{
		"an update while it runs": {update, true, map[string]int{"state": 1, "stored": 3, "live": 2}},
		"a read while it runs":    {read, true, map[string]int{"state": 1, "stored": 1, "live": 1, "persistent": 1}},
		"a read while it is off":  {read, false, map[string]int{"state": 1, "stored": 1}},
		// The state once more tells whether it was migrated meanwhile.
		"a destroy": {destroy, true, map[string]int{"state": 2, "stored": 1, "live": 1, "persistent": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &counted{busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, c.active}}, map[string]int{}}
			if err := c.do(Manager{log: quiet, host: h}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, h.asked); diff != "" {
				t.Errorf("it is asked (-want +got):\n%s", diff)
			}
		})
	}
}
