package machine

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// parsed are domains by their XML, so that XML that has not changed since it was last read is not parsed again. A nil map keeps none.
type parsed map[string]*domainxml.Domain

func (p parsed) read(text string) (*domainxml.Domain, error) {
	if d := p[text]; d != nil {
		return d, nil
	}
	d, err := domainxml.Read(text)
	if err == nil && p != nil {
		p[text] = d
	}
	return d, err
}

// ReadStored reads the stored definition as it is now.
func (m Manager) ReadStored(ctx context.Context, uuid string) (*domainxml.Domain, error) {
	text, err := m.host.StoredXML(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return m.parsed.read(text)
}

// readLive reads the running domain as it is now.
func (m Manager) readLive(ctx context.Context, uuid string) (*domainxml.Domain, error) {
	text, err := m.host.LiveXML(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return m.parsed.read(text)
}

// Observation is a domain as an operation has read it. live is nil while it is off.
type Observation struct {
	stored, live *domainxml.Domain
	state        host.State
}

// see reads a domain. An operation does so at its beginning, and again after what takes long or changes the domain.
func (m Manager) see(ctx context.Context, uuid string) (at Observation, err error) {
	var group errgroup.Group
	group.Go(func() (err error) {
		at.state, err = m.host.State(ctx, uuid)
		return err
	})
	at.stored, err = m.ReadStored(ctx, uuid)
	if failed := group.Wait(); err != nil || failed != nil {
		return at, cmp.Or(err, failed)
	}
	if at.state.Active {
		at.live, err = m.readLive(ctx, uuid)
	}
	return at, err
}

// seeHere is see for a domain that is about to be changed: a move that was interrupted is settled first, and CheckHere, which a domain that
// runs here passes.
func (m Manager) seeHere(ctx context.Context, uuid string) (at Observation, err error) {
	at, err = m.see(ctx, uuid)
	if err == nil {
		at, err = m.settleHere(ctx, uuid, at)
	}
	if errors.Is(err, host.ErrNotFound) || err == nil && at.live == nil {
		err = cmp.Or(m.CheckHere(ctx, uuid), err)
	}
	return at, err
}

// IsOn reports whether the domain runs.
func (at Observation) IsOn() bool { return at.live != nil }

// machine is the stored definition.
func (at Observation) machine() (domainxml.Machine, error) {
	is, err := at.stored.Machine()
	return is.WithoutTentative(), err
}

// Observe reads the stored definition, which the configuration describes; how the running domain differs from it; and its addresses.
func (m Manager) Observe(ctx context.Context, uuid string) (is domainxml.Machine, at Observation, err error) {
	if at, err = m.see(ctx, uuid); err == nil {
		is, err = m.Describe(ctx, uuid, at)
	}
	return is, at, err
}

// Read is Observe for a refresh: without the memory that is still changing, with autostart, and guard.ErrMigrated for a machine that
// ran and may run on another host by now.
func (m Manager) Read(ctx context.Context, uuid string, ran bool) (is domainxml.Machine, at Observation, err error) {
	is, at, err = m.Observe(ctx, uuid)
	if err == nil {
		err = m.ignoreChangingMemory(ctx, uuid, &is.Drift)
	}
	if err == nil {
		is.Autostart, err = m.host.Autostart(ctx, uuid)
	}
	if errors.Is(err, host.ErrNotFound) || err == nil && (at.live == nil && ran || at.isLeft()) {
		err = cmp.Or(m.CheckHere(ctx, uuid), err)
	}
	return is, at, err
}

// Describe is Observe of what was just read; what is empty is read first.
func (m Manager) Describe(ctx context.Context, uuid string, at Observation) (is domainxml.Machine, err error) {
	if at.stored == nil {
		if at, err = m.see(ctx, uuid); err != nil {
			return is, err
		}
	}
	if is, err = at.machine(); err != nil {
		return is, err
	}
	is.State = at.state.String()
	if at.live != nil {
		if err := is.Compare(at.live); err != nil {
			return is, err
		}
		m.reach(ctx, uuid, &is)
	} else if is.Run != "" && at.state.Reason != host.ReasonDestroyed { // without power, the root disk may tell of the run before
		m.addProgram(ctx, &is)
	}
	m.completeExternal(ctx, uuid, is.External)
	return is, nil
}
