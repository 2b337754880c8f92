package virtualmachine

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
)

// A running guest also goes on with the masters that it was started with. If one was deleted or replaced, QEMU may have the only copy, which all
// overlays of it need.

// checkLiveMasters is content.ErrMasterChanged if the running guest, which is to lose a disk, is the only one that still has the former master of
// that open.
func (l life) checkLiveMasters(ctx context.Context, live, name string, isLost func(key string) bool) error {
	attached, _, err := domainxml.AttachedTo(live)
	if err != nil {
		return err
	}
	for _, a := range attached {
		if !isLost(a.Key) {
			continue
		}
		if err := content.CheckOpenMasters(ctx, l.host, a.Volume.Images); err != nil {
			return guard.ExplainMaster(name, a, err)
		}
	}
	return nil
}

// warnOfMasters says with each plan that changes or ends a running machine which of its masters only its guest still has, and what the apply does
// about that. If the host does not answer, the apply asks again.
func (r *machine) warnOfMasters(ctx context.Context, state model, does string, diags *diag.Diagnostics) {
	h, err := r.backend.Hosts.Host(state.Host.ValueString())
	if err != nil || r.backend.Applies() || !state.Running.ValueBool() {
		return
	}
	name := state.Name.ValueString()
	live, err := located{h}.LiveXML(ctx, state.UUID.ValueString())
	var attached []domainxml.Attached
	if err == nil {
		attached, _, err = domainxml.AttachedTo(live)
	}
	for _, a := range attached {
		changed := content.CheckOpenMasters(ctx, h, a.Volume.Images)
		if errors.Is(changed, content.ErrMasterChanged) {
			diags.AddAttributeWarning(diskPath(a.Key), "Machine "+name+" has the only copy of a master", guard.ExplainMaster(name, a, changed).Error()+"\n\n"+does)
			continue
		}
		err = errors.Join(err, changed)
	}
	if err != nil {
		tflog.Warn(ctx, "Whether the masters of a machine are still there is not known", map[string]any{"machine": name, "error": err.Error()})
	}
}
