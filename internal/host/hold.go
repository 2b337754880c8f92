package host

import (
	"context"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// tries is how often an operation is repeated that another process has disturbed.
const tries = 3

// Hold starts a transient domain, paused. Names of domains are unique, so it is a lock. It ends with release or with this process, because
// libvirtd ends it together with its own connection. ErrExists is the error of a name that is held. After a crash of libvirtd the domain
// stays, without a holder.
func (h *Host) Hold(ctx context.Context, xml string) (release func(context.Context) error, err error) {
	const op = "start a domain to hold a lock"
	var wanted libvirtxml.Domain
	if err := wanted.Unmarshal(xml); err != nil {
		return nil, h.failed(op, err)
	}
	l, err := dial(ctx, h.uri, h.timeout, func(*libvirt.Libvirt) error { return nil })
	if err != nil {
		return nil, h.failed(op, err)
	}
	hangUp := func() { go l.Disconnect() } //nolint:errcheck // an unresponsive libvirtd may never answer
	type answer struct {
		domain libvirt.Domain
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		for range tries {
			a.domain, a.err = l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
			if !isCode(a.err, libvirt.ErrOperationFailed) {
				break
			}
			// libvirt has the same code for a name that exists and for other failures.
			if _, err := l.DomainLookupByName(wanted.Name); err == nil {
				a.err = fmt.Errorf("%w: %w", ErrExists, a.err)
				break
			}
		}
		answers <- a
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	}
	if a.err != nil {
		hangUp()
		return nil, h.failed(op, a.err)
	}
	return func(ctx context.Context) error {
		defer hangUp()
		return h.StopCopier(ctx, uuid.UUID(a.domain.UUID).String())
	}, nil
}
