package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// unlock changes the password of the running domain's display. It does so before the persistent definition is written, so that the next
// apply repeats it after an interruption in between.
func (m manager) unlock(ctx context.Context, uuid string, want domainxml.Machine) error {
	if want.Graphics == nil || want.Graphics.PasswordVersion == nil {
		return nil
	}
	stored, err := m.readStored(ctx, uuid)
	if err != nil {
		return err
	}
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return err
	}
	display, err := live.Unlocks(stored, want)
	if err != nil || display == "" {
		return err
	}
	return m.host.ChangeDevice(ctx, uuid, display)
}
