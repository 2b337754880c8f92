package host

import (
	"context"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// Hold starts a transient domain, paused. No two domains have one name, so it is a lock. It ends with release, and with this
// process, for it hangs on a connection of its own. A name that is taken is ErrExists. But when libvirtd crashes it stays, and nobody
// knows of it any more.
func (h *Host) Hold(ctx context.Context, xml string) (release func(context.Context) error, err error) {
	const op = "start a domain to hold a lock"
	var wanted libvirtxml.Domain
	if err := wanted.Unmarshal(xml); err != nil {
		return nil, h.failed(op, err)
	}
	l, err := dial(ctx, h.uri, func(*libvirt.Libvirt) error { return nil })
	if err != nil {
		return nil, h.failed(op, err)
	}
	hangUp := func() { go l.Disconnect() } //nolint:errcheck // it waits for a libvirtd that may never answer
	type answer struct {
		domain libvirt.Domain
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		d, err := l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
		answers <- answer{d, whyTaken(l, wanted.Name, err)}
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

// whyTaken makes ErrExists of the error of a name that is taken. libvirt has the same code for other failures, which would be
// taken for a lock that somebody holds, and waited for without end.
func whyTaken(l *libvirt.Libvirt, name string, err error) error {
	if !isCode(err, libvirt.ErrOperationFailed) {
		return err
	}
	if _, lookErr := l.DomainLookupByName(name); lookErr != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrExists, err)
}
