package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// domain addresses a domain by its UUID alone; libvirt needs no more.
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

// domainDo is onDomain for what has no answer.
func domainDo(ctx context.Context, h *Host, op, id string, f func(*libvirt.Libvirt, libvirt.Domain) error) error {
	_, err := onDomain(ctx, h, op, id, func(l *libvirt.Libvirt, d libvirt.Domain) (struct{}, error) {
		return struct{}{}, f(l, d)
	})
	return err
}

// LookupByName gives the UUID of the domain of that name, or ErrNotFound.
func (h *Host) LookupByName(ctx context.Context, name string) (string, error) {
	return call(ctx, h, "look up domain "+name, func(l *libvirt.Libvirt) (string, error) {
		d, err := l.DomainLookupByName(name)
		return uuid.UUID(d.UUID).String(), err
	})
}

// Define makes a domain, or changes the stored definition of the one with the same UUID, and gives its UUID. libvirt
// checks the XML against its schema.
func (h *Host) Define(ctx context.Context, xml string) (string, error) {
	return call(ctx, h, "define the domain", func(l *libvirt.Libvirt) (string, error) {
		d, err := l.DomainDefineXMLFlags(xml, libvirt.DomainDefineValidate)
		return uuid.UUID(d.UUID).String(), err
	})
}

// StoredXML is the stored definition, which holds from the next start on, with its secrets: without them a
// redefinition would lose the password of a display.
func (h *Host) StoredXML(ctx context.Context, id string) (string, error) {
	return h.xml(ctx, id, libvirt.DomainXMLInactive|libvirt.DomainXMLSecure)
}

// LiveXML is what runs, with its secrets, too; the stored definition of a domain that is off.
func (h *Host) LiveXML(ctx context.Context, id string) (string, error) {
	return h.xml(ctx, id, libvirt.DomainXMLSecure)
}

func (h *Host) xml(ctx context.Context, id string, flags libvirt.DomainXMLFlags) (string, error) {
	return onDomain(ctx, h, "read domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
		return l.DomainGetXMLDesc(d, flags)
	})
}

// SavedXML is what ran when the domain, which is off, was saved with its memory: Domain.Saved, with its secrets.
func (h *Host) SavedXML(ctx context.Context, id string) (string, error) {
	return onDomain(ctx, h, "look at the managed save of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
		return saved(l, d, libvirt.DomainXMLSecure) // its own flag has the same number
	})
}

// Start boots a domain.
func (h *Host) Start(ctx context.Context, id string) error {
	return domainDo(ctx, h, "start domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error { return l.DomainCreate(d) })
}

// Destroy turns a domain's power off. What its guest has not written yet is lost.
func (h *Host) Destroy(ctx context.Context, id string) error {
	return domainDo(ctx, h, "turn off domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDestroyFlags(d, libvirt.DomainDestroyGraceful)
	})
}

// undefineFlags clear all that libvirt refuses to undefine a domain for. Flags for what a domain does not have do no harm.
const undefineFlags = libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata |
	libvirt.DomainUndefineCheckpointsMetadata | libvirt.DomainUndefineNvram

// Undefine removes the stored definition of a domain that is off, and all that the host keeps for it.
func (h *Host) Undefine(ctx context.Context, id string) error {
	return domainDo(ctx, h, "undefine domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		err := l.DomainUndefineFlags(d, undefineFlags|libvirt.DomainUndefineTpm)
		if isCode(err, libvirt.ErrInvalidArg) { // before libvirt 8.9, which removes a TPM's state by itself
			err = l.DomainUndefineFlags(d, undefineFlags)
		}
		return err
	})
}
