package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// Define defines the domain, marked as being created. An existing domain of that name is used only if an interrupted creation of
// the same owner has left it; runs reports that it was running.
func (m Manager) Define(ctx context.Context, want domainxml.Machine) (id string, runs bool, err error) {
	want.Metadata = domainxml.Metadata{Owner: m.owner, Phase: domainxml.Creating, Creation: m.creation}
	if err := m.checkBacking(ctx, nil, want); err != nil {
		return "", false, err
	}
	there, err := m.host.LookupByName(ctx, want.Name)
	if err == nil {
		return m.resume(ctx, there, want)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return "", false, err
	}
	if err := m.checkLogs(ctx, domainxml.Machine{}, want); err != nil {
		return "", false, err
	}
	// The UUID is generated here, so that the domain can be found again if the host stops answering.
	want.UUID = uuid.NewString()
	text, err := domainxml.Build(want.WithMACs(domainxml.Machine{}, newMAC))
	if err != nil {
		return "", false, err
	}
	made, err := m.host.Define(ctx, text)
	if err == nil {
		return made, false, nil
	}
	if undo := m.RevertCreation(ctx, want.UUID); undo != nil {
		err = fmt.Errorf("%w\n\nLeft behind, perhaps: the domain, with the UUID %s: %w", err, want.UUID, undo)
	}
	return "", false, err
}

// resume changes what an interrupted creation has left to the present configuration.
func (m Manager) resume(ctx context.Context, uuid string, want domainxml.Machine) (id string, runs bool, err error) {
	is, at, err := m.Observe(ctx, uuid)
	if errors.Is(err, host.ErrNotFound) { // it was destroyed meanwhile
		return m.Define(ctx, want)
	}
	if err != nil {
		return "", false, err
	}
	if err := m.checkResume(ctx, uuid, is, at, want); err != nil {
		return "", false, err
	}
	if want.HardwareMatches(is) {
		if err := m.checkOpenFiles(ctx, uuid, at.live, want, false); err != nil {
			return "", false, err
		}
		_, _, err := m.reconcile(ctx, uuid, at, want, false)
		return uuid, at.live != nil, err
	}
	// The configuration has changed since, in attributes that require a new domain.
	if err := m.checkExchanged(ctx, uuid, at.live, want.Name); err != nil {
		return "", false, err
	}
	if err := m.destroy(ctx, uuid, at, true); err != nil {
		return "", false, err
	}
	return m.Define(ctx, want)
}

// checkResume makes the checks of a domain that an interrupted creation may have left.
func (m Manager) checkResume(ctx context.Context, uuid string, is domainxml.Machine, at Observation, want domainxml.Machine) error {
	if err := m.checkInterrupted(uuid, is); err != nil {
		return err
	}
	if at.live == nil {
		if err := m.CheckHere(ctx, uuid); err != nil {
			return err
		}
	}
	if err := refuseExternal(is, want); err != nil {
		return err
	}
	return m.checkLogs(ctx, is, want)
}

// ErrNameTaken is the error of a name that a machine of the same owner has, which the same apply may be about to destroy.
var ErrNameTaken = errors.New("the name is taken by a machine of the same owner")

// checkInterrupted refuses a domain that no interrupted creation of this owner has left.
func (m Manager) checkInterrupted(uuid string, is domainxml.Machine) error {
	sameOwner := m.owner != "" && is.Metadata.Owner == m.owner
	if sameOwner && is.Metadata.Phase == domainxml.Creating {
		return nil
	}
	err := fmt.Errorf("a domain of this name (UUID %s) is there already, and was left alone. To manage it from here: terraform import "+
		"<address of this resource> %s/%s", uuid, m.key, is.Name)
	if sameOwner {
		err = fmt.Errorf("%w %q: of this configuration with create_before_destroy (use name_prefix), of a copy of its "+
			"folder (give each an owner), or of a state that was lost. %w", ErrNameTaken, m.owner, err)
	}
	return err
}

// AcquireAndStart has a defined machine acquire its disks and folders, and starts it if it is to run.
func (m Manager) AcquireAndStart(ctx context.Context, uuid string, want domainxml.Machine, runs bool) error {
	want.Metadata.Owner = m.owner
	if err := m.acquire(ctx, uuid, want, devicesToCheck(taken{}, want, true)); err != nil {
		return err
	}
	if want.Autostart {
		if err := m.host.SetAutostart(ctx, uuid, true); err != nil {
			return err
		}
	}
	if !runs {
		return nil
	}
	return m.start(ctx, uuid)
}

// ErrTakenOver is the error of a creation that another apply of the same owner has continued or finished: the machine is in its state.
var ErrTakenOver = errors.New("another apply of the same owner creates this machine at the same time, and has it in its state, as after " +
	"the copy of " +

	"a configuration's folder. Give each configuration an owner and names of its own")

// Finish marks the creation of the domain as finished. ErrTakenOver is the error if another apply has continued it meanwhile.
func (m Manager) Finish(ctx context.Context, uuid string, want domainxml.Machine) error {
	stored, err := m.ReadStored(ctx, uuid)
	if err != nil {
		return err
	}
	want.Metadata = domainxml.Metadata{Owner: m.owner, Phase: domainxml.Ready}
	return m.redefineIf(ctx, stored, want, func(is domainxml.Metadata) error {
		if is.Creation != m.creation {
			return ErrTakenOver
		}
		return nil
	})
}

// RevertCreation stops and undefines a domain whose creation failed, also after the operation's timeout. It is left alone if another apply
// has continued the creation.
func (m Manager) RevertCreation(ctx context.Context, uuid string) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	at, err := m.see(ctx, uuid)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if is, err := at.machine(); err == nil && is.Metadata.Creation != m.creation {
		return nil
	}
	return m.destroy(ctx, uuid, at, true)
}

// newMAC generates an address of QEMU's range.
func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", b[0], b[1], b[2])
}
