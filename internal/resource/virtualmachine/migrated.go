package virtualmachine

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// errMigrated is the error of a machine that another host has.
var errMigrated = errors.New("it was migrated")

// errUnanswered is the error of a machine that its host does not have any more, and another host may have.
var errUnanswered = errors.New("a host that may have it, because it was migrated, does not answer")

// checkMigrated returns errMigrated for a machine that is off on its host, or missing there, while another host of the provider runs it:
// its disks are in use there, and it must not be started a second time. For a machine that its host does not have, another host's
// definition is enough. It returns errUnanswered if a host that does not answer may run it, because its own host does not have it any more,
// or reports that it is off due to a migration. If no host shows where it has ended, it may run on a host that is not configured.
func (m manager) checkMigrated(ctx context.Context, uuid string, is host.State, isGone bool) error {
	to, ended, err := guard.MigratedTo(ctx, m.all, m.key, uuid, isGone)
	if err != nil {
		tflog.Warn(ctx, "Whether a machine was migrated is not known", map[string]any{"domain": uuid, "error": err.Error()})
	}
	switch {
	case to == "" && isGone && err != nil:
		return fmt.Errorf("its host does not have it, and %w: %w. Remove a host that is gone for good from hosts, or the machine from the state "+
			"(terraform state rm)", errUnanswered, err)
	case to == "" && is.Reason == host.ReasonMigrated && err != nil:
		return fmt.Errorf("its host says that it is off because it was migrated, and %w: %w. Apply again when it does, or remove a host that is gone "+
			"for good from hosts", errUnanswered, err)
	case to == "" && is.Reason == host.ReasonMigrated && !ended:
		return fmt.Errorf("its host says that it is off because %w, and %s", errMigrated, guard.Vanished(uuid))
	case to == "":
		return nil
	case isGone:
		return fmt.Errorf("%w: host %s has the domain %s, and host %s does not. Migrate it back, or %s", errMigrated, to, uuid, m.key, guard.Adopt(to))
	}
	return fmt.Errorf("%w: host %s runs the domain %s, and host %s still has its definition. Migrate it back, or %s. Then remove the "+
		"definition that is left: %s", errMigrated, to, uuid, m.key, guard.Adopt(to), guard.UndefineLeft(uuid))
}

// checkHere is checkMigrated for a machine that is about to be changed on its host.
func (m manager) checkHere(ctx context.Context, uuid string) error {
	is, err := m.host.State(ctx, uuid)
	if err != nil && !errors.Is(err, host.ErrNotFound) || err == nil && is.Active {
		return err
	}
	return m.checkMigrated(ctx, uuid, is, err != nil)
}

// checkStopped is checkHere for a machine that has just gone off. If its host reports that it was shut down, no other host is queried; a
// transient one is gone then.
func (m manager) checkStopped(ctx context.Context, uuid string, isPersistent bool) error {
	is, err := m.host.State(ctx, uuid)
	isGone := errors.Is(err, host.ErrNotFound)
	if err != nil && !isGone || is.Active || is.Reason != "" && is.Reason != host.ReasonMigrated {
		return err
	}
	err = m.checkMigrated(ctx, uuid, is, isGone)
	if isGone && !isPersistent && errors.Is(err, errUnanswered) {
		return nil
	}
	return err
}

// warnOfMigrated reports whether a machine was migrated, and warns of that.
func (m manager) warnOfMigrated(ctx context.Context, state model, is host.State, isGone bool, diags *diag.Diagnostics) bool {
	err := m.checkMigrated(ctx, state.UUID.ValueString(), is, isGone)
	if err != nil {
		summary := "A machine was migrated"
		if isGone && errors.Is(err, errUnanswered) {
			summary = "A machine is missing"
		}
		diags.AddWarning(summary, fmt.Sprintf("Machine %s on host %s: %s. Until then it is neither read nor changed.",
			state.Name.ValueString(), state.Host.ValueString(), err))
	}
	return err != nil
}

// refuseMigrated refuses a plan that changes the disks of a machine that was migrated, or may be on a host that does not answer. Terraform
// destroys or replaces a disk before it updates the machine: the storage's binding would be detached from the guest on the other host, and
// for a disk nothing would show any more that it was this machine's.
func (r *machine) refuseMigrated(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	if r.backend.IsApplying() || plan.Disks.IsUnknown() {
		return
	}
	disks, differs := plan.disks(ctx, diags), false
	for key, was := range state.disks(ctx, diags) {
		is, has := disks[key]
		differs = differs || !has || !was.Volume.Equal(is.Volume)
	}
	h, err := r.backend.Hosts.Host(state.Host.ValueString())
	if err != nil || !differs {
		return
	}
	switch err = r.manager(h, state.Host.ValueString()).checkHere(ctx, state.UUID.ValueString()); {
	case errors.Is(err, errUnanswered):
		addError(diags, state, "Disks of a missing machine can't be changed", err)
	case errors.Is(err, errMigrated):
		addError(diags, state, "Disks of a migrated machine can't be changed", err)
	}
}
