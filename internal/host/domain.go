package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// domain is the handle of a domain. libvirt identifies it by the UUID alone.
func domain(id string) (libvirt.Domain, error) {
	u, err := uuid.Parse(id)
	return libvirt.Domain{UUID: libvirt.UUID(u)}, err
}

// onDomain is call for a domain.
func onDomain[T any](ctx context.Context, h *Host, op, id string, f func(*libvirt.Libvirt, libvirt.Domain) (T, error)) (T, error) {
	op += " " + id
	d, err := domain(id)
	if err != nil {
		var none T
		return none, h.failed(op, err)
	}
	return call(ctx, h, op, func(l *libvirt.Libvirt) (T, error) { return f(l, d) })
}

// domainDo is onDomain for calls without a result.
func domainDo(ctx context.Context, h *Host, op, id string, f func(*libvirt.Libvirt, libvirt.Domain) error) error {
	op += " " + id
	d, err := domain(id)
	if err != nil {
		return h.failed(op, err)
	}
	_, err = callOn(ctx, h, op, func(c *conn) (struct{}, error) {
		defer c.definitions.domains.drop(d.UUID) // not all changes have an event
		return struct{}{}, f(c.Libvirt, d)
	})
	return err
}

// LookupByName returns the UUID of the domain of that name, or ErrNotFound.
func (h *Host) LookupByName(ctx context.Context, name string) (string, error) {
	return call(ctx, h, "look up domain "+name, func(l *libvirt.Libvirt) (string, error) {
		d, err := l.DomainLookupByName(name)
		return uuid.UUID(d.UUID).String(), err
	})
}

// Define defines a domain, or changes the stored definition of the one with the same UUID, and returns its UUID. libvirt validates the XML
// against its schema.
func (h *Host) Define(ctx context.Context, xml string) (string, error) {
	return h.define(ctx, asInSchema(xml), libvirt.DomainDefineValidate)
}

// usbSource matches the source of a USB device as libvirtxml writes it.
var usbSource = regexp.MustCompile(`(<source[^>]*>\s*)(<address [^>]*></address>\s*)?(<product id="[^"]*"></product>\s*)` +
	`(<vendor id="[^"]*"></vendor>\s*)(</source>)`)

// asInSchema puts the children of such a source into the one order that libvirt's schema allows.
func asInSchema(xml string) string { return usbSource.ReplaceAllString(xml, "$1$4$3$2$5") }

// Redefine is Define of what this libvirt has written itself, but for our metadata: there is nothing to validate, which takes most of the
// time.
func (h *Host) Redefine(ctx context.Context, xml string) error {
	_, err := h.define(ctx, xml, 0)
	return err
}

func (h *Host) define(ctx context.Context, xml string, flags libvirt.DomainDefineFlags) (string, error) {
	return callOn(ctx, h, "define the domain", func(c *conn) (string, error) {
		d, err := c.DomainDefineXMLFlags(xml, flags)
		c.definitions.domains.drop(d.UUID)
		return uuid.UUID(d.UUID).String(), err
	})
}

// StoredXML is the stored definition, which the next start uses. It includes secrets, because a redefinition without them would lose the
// password of a display.
func (h *Host) StoredXML(ctx context.Context, id string) (string, error) {
	return h.xml(ctx, id, libvirt.DomainXMLInactive|libvirt.DomainXMLSecure)
}

// LiveXML is the XML of the running domain, with its secrets; for a domain that is off, the stored definition.
func (h *Host) LiveXML(ctx context.Context, id string) (string, error) {
	return h.xml(ctx, id, libvirt.DomainXMLSecure)
}

func (h *Host) xml(ctx context.Context, id string, flags libvirt.DomainXMLFlags) (string, error) {
	return onDomain(ctx, h, "read domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
		return l.DomainGetXMLDesc(d, flags)
	})
}

// SavedXML is the XML of the managed save of a domain that is off: Domain.Saved, with its secrets.
func (h *Host) SavedXML(ctx context.Context, id string) (string, error) {
	return onDomain(ctx, h, "look at the managed save of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
		return saved(l, d, libvirt.DomainXMLSecure) // the flag of the managed save has the same value
	})
}

// ErrActive is the error of the start of a domain that is active.
var ErrActive = errors.New("it is active already")

// Start boots a domain, or returns ErrActive.
func (h *Host) Start(ctx context.Context, id string) error {
	return domainDo(ctx, h, "start domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		err := l.DomainCreate(d)
		if isCode(err, libvirt.ErrOperationInvalid) {
			if active, failed := l.DomainIsActive(d); failed == nil && active != 0 {
				return fmt.Errorf("%w: %w", ErrActive, err)
			}
			xml, _ := l.DomainGetXMLDesc(d, libvirt.DomainXMLInactive) // without it nothing is explained
			err = explainNetworks(l, err, xml)
		}
		return err
	})
}

// Destroy turns a domain off. Data that its guest has not written yet are lost.
func (h *Host) Destroy(ctx context.Context, id string) error {
	return domainDo(ctx, h, "turn off domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDestroyFlags(d, libvirt.DomainDestroyGraceful)
	})
}

// undefineFlags remove all state because of which libvirt refuses to undefine a domain. Flags for state that a domain does not have are
// ignored.
const undefineFlags = libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata |
	libvirt.DomainUndefineCheckpointsMetadata | libvirt.DomainUndefineNvram

// Undefine removes the stored definition of a domain, and all state that the host keeps for it. One that has none any more, but runs, is no
// error.
func (h *Host) Undefine(ctx context.Context, id string) error {
	return domainDo(ctx, h, "undefine domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		err := l.DomainUndefineFlags(d, undefineFlags|libvirt.DomainUndefineTpm)
		if isCode(err, libvirt.ErrInvalidArg) { // before libvirt 8.9, which removes a TPM's state by itself
			err = l.DomainUndefineFlags(d, undefineFlags)
		}
		if isCode(err, libvirt.ErrOperationInvalid) {
			if is, e := l.DomainIsPersistent(d); e == nil && is == 0 {
				return nil
			}
		}
		return err
	})
}
