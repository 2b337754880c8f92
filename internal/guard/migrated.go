package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Hosts are all hosts of the configuration; none when it is empty.
type Hosts struct {
	Keys []string
	Host func(key string) (Peer, error)
}

// Peer is a host to which machines may have been migrated.
type Peer interface {
	Looker
	State(ctx context.Context, uuid string) (host.State, error)
}

// HostsOf returns the hosts of a registry.
func HostsOf(all *host.Registry) Hosts {
	return Hosts{all.Keys(), func(key string) (Peer, error) { return all.Host(key) }}
}

// MigratedTo is the key of another host than the domain's own that runs it: virsh migrate may leave the definition on the source. If the
// own host does not have it, a definition elsewhere suffices. It is empty if no host that answers has the domain; unanswered is the error of
// the others. ended reports whether another host shows that the domain has ended there: a definition alone may be left from an earlier
// migration.
func MigratedTo(ctx context.Context, hosts Hosts, own, uuid string, isGone bool) (to string, ended bool, unanswered error) {
	ctx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	for _, key := range hosts.Keys {
		if key == own {
			continue
		}
		is, err := hosts.state(ctx, key, uuid)
		switch {
		case err == nil && (isGone || is.Active):
			return key, false, nil
		case err == nil:
			ended = ended || slices.Contains(endings, is.Reason)
		case !errors.Is(err, host.ErrNotFound):
			unanswered = errors.Join(unanswered, err)
		}
	}
	return "", ended, unanswered
}

// endings are libvirt's reasons for a domain that is off because its guest has ended.
var endings = []string{"shutdown", "destroyed", host.ReasonCrashed, host.ReasonFailed, "daemon"}

// Vanished is the remedy for a domain that was migrated and has not ended on any host that answers.
func Vanished(domain string) string {
	return fmt.Sprintf("none of the hosts in hosts runs it or shows that it has ended there (a restarted libvirtd forgets that). If another host runs "+
		"it, add that to hosts or migrate the machine back. If it has ended, start it here once (virsh start %s), or, to do without it, remove its "+
		"definition: %s", domain, UndefineLeft(domain))
}

func (all Hosts) state(ctx context.Context, key, uuid string) (host.State, error) {
	h, err := all.Host(key)
	if err != nil {
		return host.State{}, err
	}
	return h.State(ctx, uuid)
}

// UndefineLeft is the command that removes a definition that a migration has left, and keeps its state.
func UndefineLeft(domain string) string {
	return "virsh undefine " + domain + " --keep-nvram --keep-tpm --snapshots-metadata --checkpoints-metadata"
}

// Adopt describes how to continue to manage a machine on another host.
func Adopt(key string) string {
	return fmt.Sprintf("remove the machine and its disks from the state (terraform state rm) and import them with host = %q; shut it down before the next "+
		"apply if it has raw disks, whose identity is the former host's", key)
}
