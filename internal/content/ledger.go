package content

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ledger is where a host records what can't be stored in a volume itself.
type ledger interface {
	SecretOfVolume(ctx context.Context, usage string) (uuid string, err error)
	SecretXML(ctx context.Context, uuid string) (string, error)
}

// ledgerCommand is the command that enters a volume into the ledger. Its dependents stay as they are, unlike after another import.
func ledgerCommand(v host.StorageVolume, format, id string) (string, error) {
	text, err := ledgerEntry(v, format, id)
	if err != nil {
		return "", err
	}
	var line strings.Builder
	for part := range strings.Lines(text) {
		line.WriteString(strings.TrimSpace(part))
	}
	return "echo '" + strings.ReplaceAll(line.String(), "'", "&apos;") + "' | virsh secret-define /dev/stdin", nil
}

// dropEntry removes the ledger's entry of a name that no volume has now.
func dropEntry(ctx context.Context, h Identities, pool, name string) error {
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(pool, name))
	if err == nil {
		err = h.UndefineSecret(ctx, entry)
	}
	return ignoreNotFound(err)
}

// entry is what the ledger has of a volume.
type entry struct {
	id string
	// lengths are those that a raw file may have, in bytes: none if it is not recorded as raw.
	lengths []int64
}

// noted returns the ledger's entry of a volume; empty without one. For logical volumes, libvirt's key shows whether the entry is of a
// former volume of that name, which does not count.
func noted(ctx context.Context, h ledger, v host.StorageVolume) (entry, error) {
	id, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil {
		return entry{}, ignoreNotFound(err)
	}
	described, err := descriptionOf(ctx, h, id)
	switch {
	case err != nil || !hasOwnKey(v):
		return entry{id, rawLengths(strings.TrimPrefix(described, ledgerDescription(v)))}, err
	case described == "":
		return entry{}, nil
	case described != ledgerDescription(v):
		return entry{id: uuid.Nil.String()}, nil // another volume
	}
	return entry{id: id}, nil
}

// descriptionOf is the description of a secret; empty when there is none. Its error is newer.Err for one that a newer provider has written.
func descriptionOf(ctx context.Context, h ledger, id string) (string, error) {
	text, err := h.SecretXML(ctx, id)
	if err != nil {
		return "", ignoreNotFound(err)
	}
	var secret libvirtxml.Secret
	if err := secret.Unmarshal(text); err != nil {
		return "", fmt.Errorf("read the secret %s: %w", id, err)
	}
	if err := newer.Description(secret.Description); err != nil {
		return "", fmt.Errorf("the libvirt secret %s (%q) can't be read: %w", id, secret.Description, err)
	}
	return secret.Description, nil
}

// note writes the identity of a volume, and the format that it is opened in, into the ledger, over an entry of a former volume of that
// name. The format is recorded because a guest may write another header later. grown is the length that a raw one is about to get.
func note(ctx context.Context, h Identities, v host.StorageVolume, format, id string, grown ...int64) error {
	if id == "" {
		return nil
	}
	usage := ledgerUsage(v.Pool, v.Name)
	former, err := h.SecretOfVolume(ctx, usage)
	if err == nil && former != volume.LastingGeneration(id) {
		err = h.UndefineSecret(ctx, former)
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	text, err := ledgerEntry(v, format, id, grown...)
	if err != nil {
		return err
	}
	return h.DefineSecret(ctx, text)
}

// ledgerEntry is the ledger's entry of a volume.
func ledgerEntry(v host.StorageVolume, format, id string, grown ...int64) (string, error) {
	s := libvirtxml.Secret{
		UUID: volume.LastingGeneration(id), Private: "yes", Ephemeral: "no", Description: ledgerDescription(v) + formatNote(v, format,
			grown...),
		Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: ledgerUsage(v.Pool, v.Name)},
	}
	text, err := s.Marshal()
	if err != nil {
		return "", fmt.Errorf("describe the secret of volume %s: %w", v.Name, err)
	}
	return text, nil
}

// ledgerUsage has the pool and the name, because the path changes when the pool's folder is moved.
func ledgerUsage(pool, name string) string { return "virtclaim " + pool + "/" + name }

func ledgerDescription(v host.StorageVolume) string {
	text := "identity of the volume " + v.Name + " in the storage pool " + v.Pool
	if hasOwnKey(v) {
		text += ", whose key is " + v.Key
	}
	return text
}

// hasOwnKey reports whether libvirt's key of a volume differs from that of a former volume of its name.
func hasOwnKey(v host.StorageVolume) bool { return v.Type == "block" && v.Key != "" && v.Key != v.Path }
