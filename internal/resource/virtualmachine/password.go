package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// unlock has the display of the running domain ask for another password. That comes before the stored definition has it, so
// that an apply that breaks off in between is made up for by the next one.
func (l life) unlock(ctx context.Context, uuid string, want domainxml.Machine) error {
	if want.Graphics == nil || want.Graphics.PasswordVersion == nil {
		return nil
	}
	stored, err := l.host.StoredXML(ctx, uuid)
	if err != nil {
		return err
	}
	live, err := l.host.LiveXML(ctx, uuid)
	if err != nil {
		return err
	}
	display, err := domainxml.Unlocks(stored, live, want)
	if err != nil || display == "" {
		return err
	}
	return l.host.ChangeDevice(ctx, uuid, display)
}
