package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Hosts are all hosts of the configuration.
type Hosts interface {
	Keys() []string
	Host(key string) (*host.Host, error)
}

// MigratedTo is the key of another host than the domain's own that runs it: virsh migrate may leave the definition on the source. Where
// the own host does not have it, a definition is enough. It is empty for a domain that was not migrated, as far as the hosts tell that
// answer; unanswered is of the others.
func MigratedTo(ctx context.Context, hosts Hosts, own, uuid string, isGone bool) (to string, unanswered error) {
	for _, key := range hosts.Keys() {
		if key == own {
			continue
		}
		var is host.State
		h, err := hosts.Host(key)
		if err == nil {
			is, err = h.State(ctx, uuid)
		}
		switch {
		case err == nil && (isGone || is.Active):
			return key, nil
		case err != nil && !errors.Is(err, host.ErrNotFound):
			unanswered = errors.Join(unanswered, err)
		}
	}
	return "", unanswered
}

// CheckMigrated is ErrInUse for a use by a domain that is off, and that another host runs: the image may be in use there.
func (u Use) CheckMigrated(ctx context.Context, hosts Hosts) error {
	if u.Live || u.isCopy {
		return nil
	}
	to, _ := MigratedTo(ctx, hosts, u.Host, u.UUID, false) // a host that does not answer tells nothing
	if to == "" {
		return nil
	}
	return fmt.Errorf("%w: domain %s, which has it, was migrated: host %s runs it, and host %s still has its definition. Migrate it back, or "+
		"remove the definition that is left, if it does not use this disk there: virsh undefine %s --keep-nvram --keep-tpm --snapshots-metadata --checkpoints-metadata", ErrInUse, u.Domain, to, u.Host, u.Domain)
}
