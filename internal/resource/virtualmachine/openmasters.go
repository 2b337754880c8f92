package virtualmachine

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
)

// A running guest also keeps the masters open that it was started with. If one was deleted or replaced, QEMU may have the only copy, which
// all its overlays need.

// checkLiveMasters returns content.ErrMasterChanged if the running guest is about to lose a disk and is the only one that still has its
// former master open.
func (m manager) checkLiveMasters(ctx context.Context, live *domainxml.Domain, name string, isLost func(key string) bool) error {
	var all []error
	for _, a := range live.Attached() {
		if isLost(a.Key) {
			all = append(all, explainMaster(name, a, content.CheckOpenMasters(ctx, m.host, a.Volume.Images)))
		}
	}
	return errors.Join(all...)
}

func explainMaster(machine string, disk domainxml.Attached, err error) error {
	if errors.Is(err, content.ErrMasterChanged) {
		return guard.ExplainMaster(machine, disk, err)
	}
	return err
}

// warnOfMasters warns in a plan that stops or destroys a running machine of masters that only its guest may still have. Other changes that would unplug
// such a disk are refused by the apply. If the host does not answer, the machine is stopped nevertheless, as configured.
func (r *machine) warnOfMasters(ctx context.Context, state model, diags *diag.Diagnostics) {
	h, err := r.backend.Hosts.Host(state.Host.ValueString())
	if err != nil || r.backend.IsApplying() || !state.Running.ValueBool() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	name := state.Name.ValueString()
	live, err := manager{host: located{h}}.readLive(ctx, state.UUID.ValueString())
	var attached []domainxml.Attached
	if err == nil {
		attached = live.Attached()
	}
	for _, a := range attached {
		changed := content.CheckOpenMasters(ctx, h, a.Volume.Images)
		if errors.Is(changed, content.ErrMasterChanged) {
			diags.AddAttributeWarning(diskPath(a.Key), fmt.Sprintf("Disk %s of machine %s may have the only copy of a master", a.Key, name),
				guard.ExplainMaster(name, a, changed).Error()+"\n\nIf this apply stops the machine, it discards that copy.")
			continue
		}
		err = errors.Join(err, changed)
	}
	if err != nil {
		tflog.Warn(ctx, "Whether the masters of a machine are still there is not known", map[string]any{"machine": name, "error": err.Error()})
	}
}
