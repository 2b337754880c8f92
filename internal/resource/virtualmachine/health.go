package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// transient is the suffix of the state of a machine without a persistent definition, so that a plan has a change.
const transient = " (transient)"

// health is the state of a machine on a host beyond definition and power state.
type health struct {
	host.State
	isPersistent bool
	// halted describes the disk, and its storage, that an I/O error has halted; empty without one.
	halted string
}

func (m manager) health(ctx context.Context, uuid string, at seen) (is health, err error) {
	is.State = at.state
	if !is.Active {
		return is, nil
	}
	if is.isPersistent, err = m.host.IsPersistent(ctx, uuid); err != nil || is.Responsive {
		return is, err
	}
	if is.halted, err = m.halted(ctx, uuid, at.live); err != nil { // a QEMU that does not answer is no reason to fail
		tflog.Warn(ctx, "Which disk has halted the machine is not known", map[string]any{"domain": uuid, "error": err.Error()})
	}
	return is, nil
}

// halted returns the disk that an I/O error has halted, under its key in the configuration.
func (m manager) halted(ctx context.Context, uuid string, live *domainxml.Domain) (string, error) {
	target, noSpace, err := m.host.DiskError(ctx, uuid)
	if err != nil || target == "" {
		return "", err
	}
	what := "has an I/O error"
	if noSpace {
		what = "has no space left"
	}
	for _, d := range live.Attached() {
		if d.Target == target && len(d.Volume.Images) > 0 {
			return fmt.Sprintf("Disk %s (%s on %s) %s. ", d.Key, target, d.Volume.Images[0].Name, what), nil
		}
	}
	return fmt.Sprintf("Disk %s %s. ", target, what), nil
}

// cures are the remedies, by libvirt's description of the state and its reason.
var cures = map[string]string{
	"paused (I/O error)": "Give it space, or repair its storage, and then go on with it: virsh resume %s. QEMU repeats what has failed, " +
		"so that nothing is lost.",
	"paused (crashed)":   "Its guest has crashed. Save what you need to find out why, and then restart it: virsh reset %s.",
	"crashed (panicked)": "Its guest has crashed. Save what you need to find out why (virsh dump %s).",
	"paused (watchdog)":  "Its guest did not reset its watchdog in time, so it hangs, or did. Go on with it: virsh resume %s.",
	"pmsuspended":        "Its guest has put itself to sleep. Wake it: virsh dompmwakeup %s.",
}

// warn warns of an unhealthy machine that would otherwise be unchanged in a plan. Of several warnings with one summary Terraform shows only
// the first.
func (is health) warn(m model, ran bool, diags *diag.Diagnostics) {
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
			fmt.Sprintf("%s is %s: its guest does nothing. %s%s Or give up what its memory has, as after a power cut: apply running = false and "+
				"force_stop = true, then running = true. Until then it can neither be shut down nor acknowledge an unplug.",
				where, is.Describe(), is.halted, cure))
	case !is.Active && ran && (is.Reason == host.ReasonCrashed || is.Reason == host.ReasonFailed):
		// Terraform shows it after an apply, too, which has started the machine.
		diags.AddWarning(fmt.Sprintf("Machine %s had %s", name, is.Reason),
			fmt.Sprintf("%s was found %s: it was neither shut down nor turned off. An apply starts it (running = true). Its log on the "+
				"host says more: /var/log/libvirt/qemu/%s.log", where, is.Describe(), name))
	}
	if is.Active && !is.isPersistent {
		diags.AddWarning(fmt.Sprintf("Machine %s has no stored definition", name),
			where+" runs and is transient: it was undefined, or started without a definition. It disappears when it is off. The next "+
				"apply defines it again, as it is; its guest keeps running.")
	}
}

// examine reads a machine's health into the model, and warns if it is unhealthy.
func (m *model) examine(ctx context.Context, l manager, at seen, ran bool, diags *diag.Diagnostics) error {
	is, err := l.health(ctx, m.UUID.ValueString(), at)
	if errors.Is(err, host.ErrNotFound) {
		return nil // it was removed just now: the next read reports that
	}
	if err != nil {
		return err
	}
	if is.Active && !is.isPersistent {
		m.State = types.StringValue(m.State.ValueString() + transient)
	}
	is.warn(*m, ran, diags)
	return nil
}

// persist defines a transient domain with the definition that it was started with, which libvirt still has. Its guest keeps running.
func (m manager) persist(ctx context.Context, uuid string, at seen) error {
	if at.live == nil {
		return nil
	}
	is, err := m.host.IsPersistent(ctx, uuid)
	if err != nil || is {
		return err
	}
	text, err := m.host.StoredXML(ctx, uuid)
	if err == nil {
		_, err = m.host.Define(ctx, text)
	}
	return err
}

// standsStill is the error of a machine that is not worth waiting for, because its guest is paused until it is resumed.
func standsStill(state host.State) error {
	if !state.Active || state.Responsive {
		return nil
	}
	return fmt.Errorf("it is %s, and can't respond until it is resumed", state.Describe())
}
