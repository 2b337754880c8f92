package content

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// A record is a libvirt secret without a value. Its usage is the key, its description the value; it survives restarts of libvirtd.

// records is the namespace of the UUIDs of records. They are derived from the usage, so that two processes can add the same record
// concurrently.
var records = uuid.MustParse("5d8f4f52-57e3-4c7e-9b0d-3a1c6e0b9f21")

// addRecord adds a record, or replaces its description.
func addRecord(ctx context.Context, h Identities, usage, description string) error {
	s := libvirtxml.Secret{
		UUID: uuid.NewSHA1(records, []byte(usage)).String(), Private: "yes", Ephemeral: "no", Description: description,
		Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: usage},
	}
	text, err := s.Marshal()
	if err != nil {
		return fmt.Errorf("describe the secret %q: %w", usage, err)
	}
	return h.DefineSecret(ctx, text)
}

// recordOf returns the description of a record, and its UUID; both are empty if there is none.
func recordOf(ctx context.Context, h ledger, usage string) (description, id string, err error) {
	if id, err = h.SecretOfVolume(ctx, usage); err != nil {
		return "", "", ignoreNotFound(err)
	}
	description, err = descriptionOf(ctx, h, id)
	return description, id, err
}

// dropRecord removes a record.
func dropRecord(ctx context.Context, h Identities, usage string) error {
	id, err := h.SecretOfVolume(ctx, usage)
	if err == nil {
		err = h.UndefineSecret(ctx, id)
	}
	return ignoreNotFound(err)
}
