package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Master is what a clone is made of, or what an overlay is made over.
type Master struct {
	// Overlay tells that it is an overlay, which needs the master to stay as it is: a guest that is saved goes on to write, too.
	Overlay bool
	// Host is the key of the host that makes the clone.
	Host string
	// Images are those of the master's chain.
	Images []volume.Image
	// Hosts gives a host by its key.
	Hosts func(key string) (Waiter, error)
	// All are all hosts: a machine that writes to the master may have been migrated by hand to one that it is not on.
	All Hosts
}

// AwaitQuiet returns when no machine writes to the master, and none is about to: what came of a copy would be torn. The
// clone must be published before, which is to say that its journal has the master below it, and asks a second time when
// all is copied, because a machine that was off and had looked before may have started since.
//
// Of a clone and a machine that begin at the same moment exactly one gives way. A machine that sees a clone always does, so
// one that is only published is waited for. One that runs has the right of way.
func (m Master) AwaitQuiet(ctx context.Context) error {
	patient, cancel := within(ctx, handover)
	defer cancel()
	for {
		u, image, err := m.writer(ctx)
		if err != nil || u == nil {
			return err
		}
		if u.Live || u.Saved {
			return m.refusal(*u)
		}
		h, err := m.Hosts(u.Host)
		if err == nil {
			err = u.await(patient, h, image)
		}
		if patient.Err() != nil {
			return u.comes()
		}
		if err != nil {
			return err
		}
	}
}

// refusal is the error of a master that a machine writes to.
func (m Master) refusal(u Use) error {
	does, advice := "runs and writes", "Stop it while the clone is made"
	if !u.Live {
		does = "is saved (virsh managedsave), and goes on to write"
	}
	if m.Overlay {
		advice = "An overlay needs its master to stay as it is: take the disk away from that machine, or make a clone (copy_mode = \"clone\")"
	}
	return fmt.Errorf("%w: domain %s on host %s %s to the master %s. %s", ErrInUse, u.Domain, u.Host, does, u.Image().Name, advice)
}

// comes is the error of a master that a machine is about to write to, and does not begin to.
func (u Use) comes() error {
	why := "it waits to be plugged in, or for the machine's next start. Stop the machine while the disk is made"
	if u.Mark.Phase == domainxml.Creating {
		why = "its creation goes on, or was interrupted. Try again when that is done, or apply the configuration of that machine again"
	}
	return fmt.Errorf("%w: domain %s on host %s is about to write to the master %s: %s", ErrInUse, u.Domain, u.Host, u.Image().Name, why)
}

// writer is a machine that writes to the master, or else one that is about to, and to which image; nil when there is none.
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
		elsewhere, err := m.All.Elsewhere(ctx, image.Hosts, image, slices.DeleteFunc(slices.Clone(uses), Use.reads))
		if err != nil {
			return nil, image, err
		}
		for _, u := range slices.Concat(uses, elsewhere) {
			switch {
			case u.reads():
			case u.Live, m.Overlay && u.Saved:
				return &u, image, nil
			case slices.Contains(image.Hosts, u.Host) && u.Mark.Phase != "" && u.isPublished():
				found, to = &u, image
			}
		}
	}
	return found, to, nil
}

// reads tells whether the domain only reads the image.
func (u Use) reads() bool {
	return u.Depth > 0 || u.Device.Ephemeral || u.Device.ReadOnly || u.Image().AccessMode == volume.ReadShared
}

// users are those of an image on a host. Of an image that nobody may write to, only the clone's own host has to answer.
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

// usersOfMaster are Users, and ErrInUse where the image lacks what a machine has written to an overlay that is not virtclaim's.
func usersOfMaster(ctx context.Context, key string, h Looker, image volume.Image) ([]Use, error) {
	domains, err := domainsOf(ctx, h)
	if err == nil {
		err = externalAmong(key, domains, image)
	}
	if err != nil {
		return nil, err
	}
	return usersAmong(ctx, key, h, domains, image)
}
