package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// tries is how often an operation is repeated that another process has disturbed.
const tries = 3

// Reserve stores the definition of a domain that is not started. Names of domains are unique, so it is a lock, which stays until it is
// undefined, also when this process ends. ErrExists is the error of a name that is in use.
func (h *Host) Reserve(ctx context.Context, xml string) error {
	const op = "define a domain to reserve its name"
	var wanted libvirtxml.Domain
	if err := wanted.Unmarshal(xml); err != nil {
		return h.failed(op, err)
	}
	return do(ctx, h, op, func(l *libvirt.Libvirt) error {
		return unlessExists(l, wanted.Name, func() error {
			_, err := l.DomainDefineXMLFlags(xml, 0)
			return err
		})
	})
}

// unlessExists calls create, whose error is ErrExists if there is a domain of the name.
func unlessExists(l *libvirt.Libvirt, name string, create func() error) (err error) {
	for range tries {
		if err = create(); !isCode(err, libvirt.ErrOperationFailed) {
			return err
		}
		// libvirt has the same code for a name that exists and for other failures.
		if _, missing := l.DomainLookupByName(name); missing == nil {
			return fmt.Errorf("%w: %w", ErrExists, err)
		}
	}
	return err
}

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
		a.err = unlessExists(l.Libvirt, wanted.Name, func() (err error) {
			a.domain, err = l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
			return err
		})
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

// Listed is a domain without its definitions.
type Listed struct {
	Name, UUID string
	Active     bool
}

// List lists all domains in one call.
func (h *Host) List(ctx context.Context) ([]Listed, error) {
	return call(ctx, h, "list the names of domains", func(l *libvirt.Libvirt) (found []Listed, err error) {
		all, _, err := l.ConnectListAllDomains(1, 0)
		for _, d := range all {
			found = append(found, Listed{Name: d.Name, UUID: uuid.UUID(d.UUID).String(), Active: d.ID >= 0})
		}
		return found, err
	})
}

// WaitReleased waits until a domain is gone, or the domain that holds it is off or gone.
func (h *Host) WaitReleased(ctx context.Context, id, holder string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, 2)
	go func() {
		ends <- h.Await(ctx, id, func(ctx context.Context) (bool, error) {
			_, err := h.State(ctx, id)
			if errors.Is(err, ErrNotFound) {
				return true, nil
			}
			return false, err
		})
	}()
	go func() { ends <- h.WaitStopped(ctx, holder) }()
	return <-ends
}
