package virtualmachine

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// errMigrated is the error of a machine that another host has.
var errMigrated = errors.New("it was migrated")

// checkMigrated is errMigrated for a machine that its host does not have, and another host of the provider does: its disks are in use
// there, and a second machine must not be made of them. Hosts that do not answer tell nothing.
func (r *machine) checkMigrated(ctx context.Context, state model) error {
	own, uuid := state.Host.ValueString(), state.UUID.ValueString()
	for _, key := range r.backend.Hosts.Keys() {
		if key == own {
			continue
		}
		h, err := r.backend.Hosts.Host(key)
		if err == nil {
			_, err = h.State(ctx, uuid)
		}
		if err == nil {
			return fmt.Errorf("%w: host %s has the domain %s, and host %s does not. Migrate it back, or remove the machine and its disks from the "+
				"state (terraform state rm) and import them with host = %q", errMigrated, key, uuid, own, key)
		}
		if !errors.Is(err, host.ErrNotFound) {
			tflog.Warn(ctx, "Whether a host has a machine that its own host does not have is not known",
				map[string]any{"machine": state.Name.ValueString(), "host": key, "error": err.Error()})
		}
	}
	return nil
}

// missing tells whether a machine that its host does not have is gone, or only was migrated, which is said then.
func (r *machine) missing(ctx context.Context, state model, diags *diag.Diagnostics) bool {
	err := r.checkMigrated(ctx, state)
	if err != nil {
		diags.AddWarning("A machine was migrated", fmt.Sprintf("Machine %s on host %s: %s. Until then it is neither read nor changed.",
			state.Name.ValueString(), state.Host.ValueString(), err))
	}
	return err == nil
}
