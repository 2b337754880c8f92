package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// ErrMigrated is the error of a domain that was migrated by hand. ErrUnanswered is an ErrMigrated, of a domain that its host does not have
// any more while a host that may have it does not answer.
var (
	ErrMigrated   = errors.New("it was migrated")
	ErrUnanswered = fmt.Errorf("%w, perhaps: its host does not have it, and a host that may have it does not answer", ErrMigrated)
)

// MovedError is the ErrMigrated of a domain that another host of the configuration has.
type MovedError struct {
	// To is the key of that host. IsLeft tells that the former host still has a definition.
	To     string
	IsLeft bool
	text   string
}

func (e *MovedError) Error() string { return fmt.Sprintf("%s: %s", ErrMigrated, e.text) }

// Is reports whether it is an ErrMigrated.
func (e *MovedError) Is(target error) bool { return target == ErrMigrated }

// elsewhereTime is the timeout of hosts that are asked whether they run a domain.
const elsewhereTime = 30 * time.Second

// Hosts are all hosts of the configuration; none when it is empty.
type Hosts struct {
	Keys []string
	Host func(key string) (Peer, error)
}

// Peer is a host to which machines may have been migrated.
type Peer interface {
	State(ctx context.Context, uuid string) (host.State, error)
}

// HostsOf returns the hosts of a registry.
func HostsOf(all *host.Registry) Hosts {
	return Hosts{all.Keys(), func(key string) (Peer, error) { return all.Host(key) }}
}

// CheckUses is ErrInUse if a domain that has storage and is off on its host was migrated. Other hosts are asked about such domains only.
func (all Hosts) CheckUses(ctx context.Context, uses []Use) error {
	if len(all.Keys) == 0 {
		return nil
	}
	var group errgroup.Group
	for _, u := range uses {
		if u.Live || u.isCopy {
			continue
		}
		group.Go(func() error {
			h, err := all.Host(u.Host)
			if err == nil {
				err = all.CheckMigrated(ctx, u.Host, h, u.UUID)
			}
			if errors.Is(err, ErrMigrated) {
				return fmt.Errorf("%w: domain %s, which has %s: %w", ErrInUse, u.Domain, u.Image().Name, err)
			}
			return err
		})
	}
	return group.Wait()
}

// CheckMigrated is ErrMigrated for a domain that is off on its own host, or left paused by a migration, while another host runs it, or that
// is off there because it was migrated: it may run on any host. If its own host does not have it, another host's definition suffices, and a
// host that does not answer is ErrUnanswered.
func (all Hosts) CheckMigrated(ctx context.Context, own string, h Peer, uuid string) error {
	is, err := h.State(ctx, uuid)
	isGone := errors.Is(err, host.ErrNotFound)
	if err != nil && !isGone || is.Active && !is.IsLeftByMigration() {
		return err
	}
	to, unanswered := all.find(ctx, own, uuid, isGone)
	switch {
	case to != "":
		has, does := "runs it", "has its definition"
		if isGone {
			has, does = "has it", "does not"
		}
		return &MovedError{to, !isGone, fmt.Sprintf("host %s %s, and host %s %s. Plan again, with a refresh: the plan shows that its host "+
			"has changed, and an apply accepts that or moves it back", to, has, own, does)}
	case isGone && unanswered != nil:
		return fmt.Errorf("%w: %w. Remove a host that is gone for good from hosts, or the machine from the state (terraform state rm)",
			ErrUnanswered, unanswered)
	case is.Reason == host.ReasonMigrated:
		return fmt.Errorf("%w, as host %s says, and no host in hosts that answers runs it. If another one does, add that to hosts or "+
			"migrate it back. If it has ended there, start it here once (virsh start %s), or, to do without it, remove its definition "+
			"(virsh undefine)",
			ErrMigrated, own, uuid)
	}
	return nil
}

// find asks all other hosts than own which of them runs a domain or, with defined, has it. If none does, unanswered is the error of those
// that do not answer.
func (all Hosts) find(ctx context.Context, own, uuid string, defined bool) (to string, unanswered error) {
	ctx, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, key := range all.Keys {
		if key == own {
			continue
		}
		group.Go(func() {
			var is host.State
			h, err := all.Host(key)
			if err == nil {
				is, err = h.State(ctx, uuid)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && (is.Active || defined && to == ""):
				to = key
			case err != nil && !errors.Is(err, host.ErrNotFound):
				unanswered = errors.Join(unanswered, err)
			}
		})
	}
	group.Wait()
	return to, unanswered
}
