package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// transient is the suffix of the state of a machine without a persistent definition, so that a plan has a change.
const transient = " (transient)"

// cures are the remedies, by libvirt's description of the state and its reason.
var cures = map[string]string{
	"paused (I/O error)": "Give it space, or repair its storage, and then go on with it: virsh resume %s. QEMU repeats what has failed, " +
		"so that nothing is lost.",
	"paused (crashed)":   "Its guest has crashed. Save what you need to find out why, and then restart it: virsh reset %s.",
	"crashed (panicked)": "Its guest has crashed. Save what you need to find out why (virsh dump %s).",
	"paused (watchdog)":  "Its guest did not reset its watchdog in time, so it hangs, or did. Go on with it: virsh resume %s.",
	"pmsuspended":        "Its guest has put itself to sleep. Wake it: virsh dompmwakeup %s.",
}

// warnOfHealth warns of an unhealthy machine that would otherwise be unchanged in a plan. Of several warnings with one summary
// Terraform shows only the first.
func (m model) warnOfHealth(is machine.Health, ran bool, diags *diag.Diagnostics) {
	name, where := m.Name.ValueString(), fmt.Sprintf("Machine %s on host %s", m.Name.ValueString(), m.Host.ValueString())
	switch {
	case is.Active && !is.Responsive:
		cure, known := cures[is.Describe()]
		if !known {
			cure = "Go on with it: virsh resume %s."
		}
		if strings.Contains(cure, "%s") {
			cure = fmt.Sprintf(cure, name)
		}
		diags.AddWarning(fmt.Sprintf("Machine %s is %s", name, is.State),
			fmt.Sprintf("%s is %s: its guest does nothing. %s%s Or give up what its memory has, as after a power cut: apply running = "+
				"false and force_stop = true, then running = true. Until then it can neither be shut down nor acknowledge an unplug.",
				where, is.Describe(), is.Halted, cure))
	case !is.Active && ran && (is.Reason == host.ReasonCrashed || is.Reason == host.ReasonFailed):
		// Terraform shows it after an apply, too, which has started the machine.
		diags.AddWarning(fmt.Sprintf("Machine %s had %s", name, is.Reason),
			fmt.Sprintf("%s was found %s: it was neither shut down nor turned off. An apply starts it (running = true). Its log on the "+
				"host says more: /var/log/libvirt/qemu/%s.log", where, is.Describe(), name))
	}
	if is.Active && !is.IsPersistent {
		diags.AddWarning(fmt.Sprintf("Machine %s has no stored definition", name),
			where+" runs and is transient: it was undefined, or started without a definition. It disappears when it is off. The next "+
				"apply defines it again, as it is; its guest keeps running.")
	}
}

// examine reads a machine's health into the model, and warns if it is unhealthy.
func (m *model) examine(ctx context.Context, l machine.Manager, at machine.Observation, ran bool, diags *diag.Diagnostics) error {
	is, err := l.Health(ctx, m.UUID.ValueString(), at)
	if errors.Is(err, host.ErrNotFound) {
		return nil // it was removed just now: the next read reports that
	}
	if err != nil {
		return err
	}
	if is.Active && !is.IsPersistent {
		m.State = types.StringValue(m.State.ValueString() + transient)
	}
	if at.IsMoving() {
		m.State = types.StringValue(m.State.ValueString() + moving)
	}
	if at.IsMoving() && is.Active && !is.IsRunning() {
		diags.AddWarning(fmt.Sprintf("Machine %s waits for the end of its move", m.Name.ValueString()), fmt.Sprintf("An interrupted move "+
			"has left its guest paused on host %s. The next apply has it go on where it may. Don't resume it by hand: it may have run on "+
			"the other host, and its memory would be older than its disks.", m.Host.ValueString()))
		return nil
	}
	m.warnOfHealth(is, ran, diags)
	return nil
}

// warnOfExternal warns in every plan of changes made to the disks outside of Terraform.
func (m model) warnOfExternal(ctx context.Context, is domainxml.Machine, diags *diag.Diagnostics) {
	if len(is.External) == 0 {
		return
	}
	was := m.was(ctx)
	for _, key := range slices.Sorted(maps.Keys(is.External)) {
		// Of several warnings with one summary Terraform shows only the first.
		diags.AddAttributeWarning(diskPath(key), fmt.Sprintf("Disk %s of machine %s is not only virtclaim's", key, m.Name.ValueString()),
			fmt.Sprintf("On host %s, %s. Until then the machine can't be updated%s.", m.Host.ValueString(),
				guard.ExplainExternal(is.Name, key, is.External[key]), orDestroyed(is.External[key], was.Disks[key].Volume)))
	}
}

// orDestroyed is empty if the machine can be destroyed.
func orDestroyed(e domainxml.External, v volume.Volume) string {
	if machine.IsForgotten(e, v) {
		return ""
	}
	return " or destroyed"
}
