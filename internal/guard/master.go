package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Master is the source of a clone or the backing image of an overlay.
type Master struct {
	// Overlay tells whether an overlay is created, for which the master must never change: a saved guest counts as a writer, too.
	Overlay bool
	// Host is the key of the host that makes the clone.
	Host string
	// Images are those of the master's chain.
	Images []volume.Image
	// Hosts returns a host by its key.
	Hosts func(key string) (Waiter, error)
	// All are all hosts: a machine that writes to the master may have been migrated to one of them by hand.
	All Hosts
}

// AwaitQuiet returns when no machine writes to the master, or is about to: the copy would be inconsistent. The clone must be published
// before: its journal must have the master as its backing image. It is called again after the copy, because a machine that was off may
// have made its checks before the clone was published, and may have started since.
//
// Of a clone and a machine that begin concurrently, exactly one yields. A machine always yields to a clone that it sees, so a machine that
// is only published is waited for. A running machine has precedence.
func (m Master) AwaitQuiet(ctx context.Context) error {
	waitCtx, cancel := within(ctx, handover)
	defer cancel()
	for {
		u, image, err := m.writer(ctx)
		if err != nil || u == nil {
			return err
		}
		if u.Live || u.Saved || u.isFilling() {
			return m.refusal(*u)
		}
		h, err := m.Hosts(u.Host)
		if err == nil {
			err = u.await(waitCtx, h, image)
		}
		if waitCtx.Err() != nil {
			return u.writerPending()
		}
		if err != nil {
			return err
		}
	}
}

// refusal is the error of a master to which a machine writes.
func (m Master) refusal(u Use) error {
	does, advice := "runs and writes", "Stop it while the clone is made"
	if u.isFilling() {
		return fmt.Errorf("%w: domain %s on host %s fills the master %s. %s", ErrInUse, u.Domain, u.Host, u.Image().Name, untilFilled)
	}
	if !u.Live {
		does = "is saved (virsh managedsave), and goes on to write"
	}
	if m.Overlay {
		advice = "An overlay needs its master to stay as it is: take the disk away from that machine, or make a clone (copy_mode = " +
			"\"clone\")"
	}
	return fmt.Errorf("%w: domain %s on host %s %s to the master %s. %s", ErrInUse, u.Domain, u.Host, does, u.Image().Name, advice)
}

// writerPending is the error of a master to which a published machine is about to write, and that neither starts nor withdraws in time.
func (u Use) writerPending() error {
	why := "it waits to be plugged in, or for the machine's next start. Stop the machine while the disk is made"
	if u.Metadata.Phase == domainxml.Creating {
		why = "its creation goes on, or was interrupted. Try again when that is done, or apply the configuration of that machine again"
	}
	return fmt.Errorf("%w: domain %s on host %s is about to write to the master %s: %s", ErrInUse, u.Domain, u.Host, u.Image().Name, why)
}

// writer is a machine that writes to an image of the master, or else one that is about to; nil when there is none.
func (m Master) writer(ctx context.Context) (found *Use, to volume.Image, err error) {
	for _, image := range m.Images {
		var uses []Use
		for _, key := range image.Hosts {
			here, err := m.users(ctx, key, image)
			if err != nil {
				return nil, image, err
			}
			uses = append(uses, here...)
		}
		uses = slices.DeleteFunc(uses, Use.Reads)
		if err := m.All.CheckUses(ctx, uses); err != nil {
			return nil, image, err
		}
		for _, u := range uses {
			switch {
			case u.Live, u.isFilling(), m.Overlay && u.Saved:
				return &u, image, nil
			case u.Metadata.Phase != "" && u.isPublished():
				found, to = &u, image
			}
		}
	}
	return found, to, nil
}

// Reads reports whether the domain only reads the image.
func (u Use) Reads() bool {
	return u.Depth > 0 || u.Device.Ephemeral || u.Device.ReadOnly || u.Image().AccessMode == volume.ReadShared
}

// users are the uses of an image on a host. For an image that no machine may write to, only the clone's own host must answer.
func (m Master) users(ctx context.Context, key string, image volume.Image) (uses []Use, err error) {
	needed := key == m.Host || image.AccessMode != volume.ReadShared
	if !needed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerTime)
		defer cancel()
	}
	h, err := m.Hosts(key)
	if err == nil {
		uses, err = usersOfMaster(ctx, key, h, image)
	}
	if errors.Is(err, ErrInUse) {
		return nil, err
	}
	if err != nil && needed {
		return nil, fmt.Errorf("whether a machine writes to the master %s is not known: %w", image.Name, err)
	}
	return uses, nil
}

// usersOfMaster are Users, and ErrInUse if the image lacks the writes of a machine to an overlay that virtclaim did not create.
func usersOfMaster(ctx context.Context, key string, h Looker, image volume.Image) ([]Use, error) {
	domains, err := List(ctx, h)
	if err == nil {
		err = External(key, domains, image)
	}
	if err != nil {
		return nil, err
	}
	return UsersAmong(ctx, key, h, domains, image)
}
