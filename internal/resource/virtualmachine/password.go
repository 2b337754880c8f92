package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// unlock changes the password of the running domain's display. It does so before the persistent definition is written, so that the next
// apply repeats it after an interruption in between.
func (m manager) unlock(ctx context.Context, uuid string, stored, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	if want.Graphics == nil || want.Graphics.PasswordVersion == nil {
		return live, nil
	}
	display, err := live.Unlocks(stored, want)
	if err != nil || display == "" {
		return live, err
	}
	if err := m.host.ChangeDevice(ctx, uuid, display); err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}
