// Package secret keeps credentials on hosts as libvirt secrets: one for each binding and host, whose UUID is the binding's id.
package secret

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Store are the calls of a host that this package needs.
type Store interface {
	DefineSecret(ctx context.Context, xml string) error
	SetSecretValue(ctx context.Context, id string, value []byte) error
	SecretXML(ctx context.Context, id string) (string, error)
	UndefineSecret(ctx context.Context, id string) error
}

// ErrForeign is the error of a secret that has a binding's UUID but was not created by virtclaim.
var ErrForeign = errors.New("the libvirt secret was not made by virtclaim")

// Record is the description of a secret on a host.
type Record struct {
	// ID is the binding's id and the secret's UUID.
	ID string
	// Owner and Name are those of the binding.
	Owner, Name string
	// Nonce is random for each binding; it distinguishes two bindings of the same owner and name.
	Nonce string
	// Version is the version of the credentials.
	Version string
	// Volume is the fingerprint of the answer about a dynamic volume; empty for others, and for a binding that an older virtclaim created.
	Volume string
}

// prefix starts every description; a query string follows, so that names may have any character.
const prefix = "virtclaim binding "

func (r Record) description() string {
	v := url.Values{}
	v.Set("name", r.Name)
	v.Set("owner", r.Owner)
	v.Set("nonce", r.Nonce)
	v.Set("version", r.Version)
	if r.Volume != "" {
		v.Set("volume", r.Volume)
	}
	return prefix + v.Encode()
}

func parse(id, description string) (Record, error) {
	query, ours := strings.CutPrefix(description, prefix)
	v, err := url.ParseQuery(query)
	if !ours || err != nil {
		return Record{}, fmt.Errorf("secret %s: %w", id, ErrForeign)
	}
	return Record{
		ID: id, Owner: v.Get("owner"), Name: v.Get("name"), Nonce: v.Get("nonce"), Version: v.Get("version"), Volume: v.Get("volume"),
	}, nil
}

// xml describes the secret, for credentials of that type, without its value. It is private, so that libvirt does not return the value, and
// persistent, because the machines that need it survive a restart of the host, too.
func (r Record) xml(kind string) (string, error) {
	usage := &libvirtxml.SecretUsage{Type: kind, Target: "virtclaim-" + r.ID}
	switch kind {
	case "ceph":
		usage = &libvirtxml.SecretUsage{Type: kind, Name: "virtclaim-" + r.ID}
	case "volume":
		usage = &libvirtxml.SecretUsage{Type: kind, Volume: "virtclaim-" + r.ID}
	}
	s := libvirtxml.Secret{UUID: r.ID, Private: "yes", Ephemeral: "no", Description: r.description(), Usage: usage}
	return s.Marshal()
}

// Put creates or updates the secret of a binding on a host. Its version is written after its value: a secret whose value was not updated
// has no version. undo reverts the change, also after an error; it is nil if nothing was changed. A secret of that UUID that virtclaim did
// not create is ErrForeign, and left alone.
func Put(ctx context.Context, s Store, r Record, c volume.Credentials) (undo func(context.Context) error, err error) {
	before, err := Get(ctx, s, r.ID)
	isNew := errors.Is(err, host.ErrNotFound)
	if err != nil && !isNew {
		return nil, err
	}
	undo = func(ctx context.Context) error {
		if isNew {
			return Remove(ctx, s, r.ID, r.Nonce)
		}
		return transfer(ctx, s, r, before, c.Type)
	}
	begun := r
	begun.Version = ""
	if err := define(ctx, s, begun, c.Type); err != nil {
		return undo, err
	}
	if err := s.SetSecretValue(ctx, r.ID, c.Secret); err != nil {
		return undo, err
	}
	return undo, define(ctx, s, r, c.Type)
}

// transfer returns a secret to the binding that had it before, whose machines need it. libvirt does not return values, so the former value
// is lost: the secret has no version, and that binding's next update writes the value again.
func transfer(ctx context.Context, s Store, from, to Record, kind string) error {
	now, err := Get(ctx, s, from.ID)
	if errors.Is(err, host.ErrNotFound) || err == nil && now.Nonce != from.Nonce {
		return nil
	}
	if err != nil {
		return err
	}
	to.Version = ""
	return define(ctx, s, to, kind)
}

func define(ctx context.Context, s Store, r Record, kind string) error {
	xml, err := r.xml(kind)
	if err != nil {
		return fmt.Errorf("describe secret %s: %w", r.ID, err)
	}
	return s.DefineSecret(ctx, xml)
}

// Get reads the description of a binding's secret; host.ErrNotFound if there is none, newer.Err for one of a newer provider.
func Get(ctx context.Context, s Store, id string) (Record, error) {
	xml, err := s.SecretXML(ctx, id)
	if err != nil {
		return Record{}, err
	}
	var parsed libvirtxml.Secret
	if err := parsed.Unmarshal(xml); err != nil {
		return Record{}, fmt.Errorf("read the description of secret %s: %w", id, err)
	}
	if err := newer.Description(parsed.Description); err != nil {
		return Record{}, fmt.Errorf("the libvirt secret %s can't be read: %w", id, err)
	}
	return parse(id, parsed.Description)
}

// Remove removes a binding's secret from a host if it has the binding's nonce. It is no error if the secret is gone, or if another binding
// of the same owner and name has taken it over.
func Remove(ctx context.Context, s Store, id, nonce string) error {
	r, err := Get(ctx, s, id)
	if errors.Is(err, host.ErrNotFound) || err == nil && r.Nonce != nonce {
		return nil
	}
	if err == nil {
		err = s.UndefineSecret(ctx, id)
	}
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}
