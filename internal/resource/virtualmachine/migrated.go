package virtualmachine

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// checkHere is guard.ErrMigrated for a machine that runs, or may run, on another host: its disks are in use there, and it must not be
// started a second time.
func (m manager) checkHere(ctx context.Context, uuid string) error {
	return m.all.CheckMigrated(ctx, m.key, m.host, uuid)
}

// checkStopped is checkHere for a machine that has just gone off. If its host reports that it was shut down, no other host is queried; a
// transient one is gone then.
func (m manager) checkStopped(ctx context.Context, uuid string, isPersistent bool) error {
	is, err := m.host.State(ctx, uuid)
	if err == nil && !is.Active && is.Reason != "" && is.Reason != host.ReasonMigrated {
		return nil
	}
	if err = m.checkHere(ctx, uuid); !isPersistent && errors.Is(err, guard.ErrUnanswered) {
		return nil
	}
	return err
}

// refuseMigrated refuses a plan that changes the disks of a machine that was migrated, or may be on a host that does not answer. Terraform
// destroys or replaces a disk before it updates the machine: the storage's binding would be detached from the guest on the other host, and
// for a disk nothing would show any more that it was this machine's.
func (r *machine) refuseMigrated(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	if r.Provider.IsApplying() || plan.Disks.IsUnknown() {
		return
	}
	disks, differs := plan.disks(ctx, diags), false
	for key, was := range state.disks(ctx, diags) {
		is, has := disks[key]
		differs = differs || !has || !was.Volume.Equal(is.Volume)
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil || !differs {
		return
	}
	if err = r.manager(h, state.Host.ValueString()).checkHere(ctx, state.UUID.ValueString()); errors.Is(err, guard.ErrMigrated) {
		addError(diags, state, "Disks of a missing or migrated machine can't be changed", err)
	}
}
