package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// shown is a host with the state of one domain.
type shown struct {
	Host
	is  host.State
	err error
}

func (h *shown) State(context.Context, string) (host.State, error) { return h.is, h.err }

// others are the hosts a, which is the machine's own, and b.
func others(b *shown) guard.Hosts {
	return guard.Hosts{Keys: []string{"a", "b"}, Host: func(string) (guard.Peer, error) { return b, nil }}
}

// A machine that runs, or may run, on another host is neither started a second time nor removed.
func TestCheckHere(t *testing.T) {
	off, on, away := host.State{Reason: "shutdown"}, host.State{Active: true}, host.State{Reason: host.ReasonMigrated}
	down := errors.New("no route to host b")
	for name, c := range map[string]struct {
		own, other *shown
		want       error
	}{
		"it runs here":                       {&shown{is: on}, &shown{err: down}, nil},
		"it is off":                          {&shown{is: off}, &shown{err: host.ErrNotFound}, nil},
		"it is off, and who knows":           {&shown{is: off}, &shown{err: down}, nil},
		"it is off, and runs there":          {&shown{is: off}, &shown{is: on}, guard.ErrMigrated},
		"it was migrated, and runs there":    {&shown{is: away}, &shown{is: on}, guard.ErrMigrated},
		"it was migrated, and is off there":  {&shown{is: away}, &shown{is: off}, guard.ErrMigrated},
		"it was migrated, and is on no host": {&shown{is: away}, &shown{err: host.ErrNotFound}, guard.ErrMigrated},
		"it was migrated, and who knows":     {&shown{is: away}, &shown{err: down}, guard.ErrMigrated},
		"it is gone":                         {&shown{err: host.ErrNotFound}, &shown{err: host.ErrNotFound}, nil},
		"it is gone, and there":              {&shown{err: host.ErrNotFound}, &shown{is: off}, guard.ErrMigrated},
		"it is gone, and who knows":          {&shown{err: host.ErrNotFound}, &shown{err: down}, guard.ErrUnanswered},
		"its own host is down":               {&shown{err: down}, &shown{is: off}, down},
	} {
		t.Run(name, func(t *testing.T) {
			l := Manager{log: quiet, host: c.own, key: "a", all: others(c.other)}
			err := l.CheckHere(t.Context(), "web")
			if !errors.Is(err, c.want) || errors.Is(err, guard.ErrUnanswered) != errors.Is(c.want, guard.ErrUnanswered) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// leaving is a host whose domain is migrated away while it is being stopped.
type leaving struct {
	shown
	isPersistent bool
	after        shown
	done         []string
}

func (h *leaving) IsPersistent(context.Context, string) (bool, error) { return h.isPersistent, nil }

func (h *leaving) Stop(context.Context, string, host.Shutdown) error {
	h.shown = h.after
	return nil
}

func (h *leaving) StoredXML(context.Context, string) (string, error) {
	return "<domain type='kvm'><name>web</name></domain>", h.err
}

func (h *leaving) LiveXML(ctx context.Context, uuid string) (string, error) {
	return h.StoredXML(ctx, uuid)
}

func (h *leaving) Define(context.Context, string) (string, error) { return "", nil }

func (h *leaving) Undefine(context.Context, string) error {
	h.done = append(h.done, "undefine")
	return nil
}

func (h *leaving) Start(context.Context, string) error {
	h.done = append(h.done, "start")
	return nil
}

func TestStop_MigratedMeanwhile(t *testing.T) {
	off, on, away := shown{is: host.State{Reason: "shutdown"}}, shown{is: host.State{Active: true}}, shown{is: host.State{Reason: host.ReasonMigrated}}
	gone, down := shown{err: host.ErrNotFound}, shown{err: errors.New("no route to host b")}
	for name, c := range map[string]struct {
		after, other shown
		isTransient  bool
		want         error
	}{
		"it has shut down":                  {off, down, false, nil},
		"it runs there":                     {away, on, false, guard.ErrMigrated},
		"it may run there":                  {away, down, false, guard.ErrMigrated},
		"it runs on an unknown host":        {away, gone, false, guard.ErrMigrated},
		"its definition went, too":          {gone, on, false, guard.ErrMigrated},
		"its definition may have gone, too": {gone, down, false, guard.ErrUnanswered},
		"a transient one has shut down":     {gone, down, true, nil},
		"a transient one runs there":        {gone, on, true, guard.ErrMigrated},
	} {
		t.Run(name, func(t *testing.T) {
			h := &leaving{shown: on, after: c.after, isPersistent: !c.isTransient}
			l := Manager{log: quiet, host: h, key: "a", all: others(&c.other)}
			at, err := l.see(t.Context(), "web")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.destroy(t.Context(), "web", at, true); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			h.shown = on
			if err := l.restart(t.Context(), "web", domainxml.Machine{}, true, errors.New("pending")); c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("restarted: %v, want %v", err, c.want)
			}
			if c.want != nil && len(h.done) > 0 {
				t.Error(h.done)
			}
		})
	}
}
