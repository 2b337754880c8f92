package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// stop shuts the machine down and reports progress. A machine that is migrated away meanwhile is off on this host, and runs elsewhere.
func (m manager) stop(ctx context.Context, uuid string, at seen, force bool) error {
	defer tfvalue.Progress(ctx, "Waiting for the guest to shut down", map[string]any{"domain": uuid, "force_stop": force})()
	if at.live == nil {
		return m.host.Stop(ctx, uuid, force) // it may have been started since
	}
	isPersistent, err := m.host.IsPersistent(ctx, uuid)
	if err == nil {
		err = m.host.Stop(ctx, uuid, force)
	}
	if err != nil {
		return err
	}
	return m.checkStopped(ctx, uuid, isPersistent)
}

// stopped is the machine after stop.
func (m manager) stopped(ctx context.Context, uuid string, at seen, force bool) (seen, error) {
	if err := m.stop(ctx, uuid, at, force); err != nil {
		return at, err
	}
	return m.see(ctx, uuid)
}

// unplugging is the context and the announcement of an unplug. The host waits for a fifth of the timeout, but for a minute at least: of a
// short one, that is cut to a fifth, too, where the machine may be restarted for what its guest does not acknowledge.
func (m manager) unplugging(ctx context.Context, machine, device string) (limited context.Context, done func()) {
	cancel := func() {}
	if deadline, ok := ctx.Deadline(); ok && m.mayRestart && time.Until(deadline)/5 < time.Minute {
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/5)
	}
	stop := tfvalue.Progress(ctx, "Waiting for the guest to acknowledge the unplug", map[string]any{"machine": machine, "device": device})
	return ctx, func() { stop(); cancel() }
}

// withWayOut adds to an error what to do about a guest that does not acknowledge an unplug.
func withWayOut(err error) error {
	if !errors.Is(err, host.ErrDetachRefused) {
		return err
	}
	return fmt.Errorf("%w\n\nApply again when the guest runs and does not use it: it is asked again. To do without the guest, have the "+
		"machine restarted: allow_restart = true and, if it ignores its power button, too, force_stop = true", err)
}

// keepSettings stores the attributes that only a later destroy reads, also if this update fails: otherwise force_stop could never be
// set for a guest that makes each update fail.
func (m model) keepSettings(ctx context.Context, state *tfsdk.State, diags *diag.Diagnostics) {
	diags.Append(state.SetAttribute(ctx, path.Root("force_stop"), m.ForceStop)...)
	diags.Append(state.SetAttribute(ctx, path.Root("timeouts"), m.Timeouts)...)
}

// ofDestroy adds to the error of a destroy how it can succeed. It uses the attributes of the last apply, and as part of a replacement no
// apply can set others.
func (m model) ofDestroy(err error) error {
	if !errors.Is(err, host.ErrStillRunning) {
		return err
	}
	return fmt.Errorf("%w\n\nA destroy, also that of a replacement, uses what was applied last. Turn the machine's power off on its host, and repeat "+
		"the command:\n\n    virsh destroy %s\n\nOr, if nothing else in its configuration has changed, apply force_stop = true or longer timeouts first",
		err, m.Name.ValueString())
}
