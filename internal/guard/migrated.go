package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Hosts are all hosts of the configuration; none when it is empty.
type Hosts struct {
	Keys []string
	Host func(key string) (Peer, error)
}

// Peer is a host that may have what was migrated to it.
type Peer interface {
	Looker
	State(ctx context.Context, uuid string) (host.State, error)
}

// HostsOf are the hosts of a fleet.
func HostsOf(fleet *host.Fleet) Hosts {
	return Hosts{fleet.Keys(), func(key string) (Peer, error) { return fleet.Host(key) }}
}

// MigratedTo is the key of another host than the domain's own that runs it: virsh migrate may leave the definition on the source. Where
// the own host does not have it, a definition is enough. It is empty for a domain that was not migrated, as far as the hosts tell that
// answer; unanswered is of the others.
func MigratedTo(ctx context.Context, hosts Hosts, own, uuid string, isGone bool) (to string, unanswered error) {
	ctx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	for _, key := range hosts.Keys {
		if key == own {
			continue
		}
		is, err := hosts.state(ctx, key, uuid)
		switch {
		case err == nil && (isGone || is.Active):
			return key, nil
		case err != nil && !errors.Is(err, host.ErrNotFound):
			unanswered = errors.Join(unanswered, err)
		}
	}
	return "", unanswered
}

func (all Hosts) state(ctx context.Context, key, uuid string) (host.State, error) {
	h, err := all.Host(key)
	if err != nil {
		return host.State{}, err
	}
	return h.State(ctx, uuid)
}

// UndefineLeft is the command that removes a definition which a migration has left, with all its state kept.
func UndefineLeft(domain string) string {
	return "virsh undefine " + domain + " --keep-nvram --keep-tpm --snapshots-metadata --checkpoints-metadata"
}

// Adopt is how a machine goes on to be managed on another host.
func Adopt(key string) string {
	return fmt.Sprintf("remove the machine and its disks from the state (terraform state rm) and import them with host = %q; shut it down before the next "+
		"apply if it has raw disks, whose identity is the former host's", key)
}
