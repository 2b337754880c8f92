package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// refuseMigrated refuses a plan that changes the disks of a machine that was migrated, or may be on a host that does not answer. Terraform
// destroys or replaces a disk before it updates the machine: the storage's binding would be detached from the guest on the other host, and
// for a disk nothing would show any more that it was this machine's.
func (r *virtualMachine) refuseMigrated(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	if r.Provider.IsApplying() || plan.Disks.IsUnknown() {
		return
	}
	disks, differs := plan.disks(), false
	for key, was := range state.disks() {
		is, has := disks[key]
		if has && was.Volume.Equal(is.Volume) {
			continue
		}
		differs = true
		if i := r.elsewhere(was, state.Host.ValueString()); i != nil {
			diags.AddAttributeError(diskPath(key), isMigrated, fmt.Sprintf("The machine was migrated to host %s. Its disk %s, %s, is "+
				"virtclaim's on %s only. Migrate the machine back there before.", state.Host.ValueString(), key, i.Name,
				strings.Join(i.Hosts, ", ")))
			return
		}
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil || !differs {
		return
	}
	if err = r.manager(h, state.Host.ValueString()).CheckHere(ctx, state.UUID.ValueString()); errors.Is(err, guard.ErrMigrated) {
		addError(diags, state, isMigrated, err)
	}
}

const isMigrated = "Disks of a missing or migrated machine can't be changed"

// elsewhere is the first image of a disk that is not there for the host, as of a machine that others have migrated; nil without one. A host
// that is not in hosts may have this one's former name, and a disk that others have attached has none.
func (r *virtualMachine) elsewhere(d diskModel, key string) *volume.Image {
	v, known, _ := tfvalue.VolumeFrom(d.Volume)
	mayBe := func(k string) bool { return k == key || !slices.Contains(r.Provider.Hosts.Keys(), k) }
	for _, i := range v.Images {
		if known && len(i.Hosts) > 0 && !slices.ContainsFunc(i.Hosts, mayBe) {
			return &i
		}
	}
	return nil
}

// warnOfOpenFiles warns in each plan that changes a disk whose file only the guest still has, and describes what the apply does. The host
// is queried only in this case. If it does not answer, the apply checks again.
func (r *virtualMachine) warnOfOpenFiles(ctx context.Context, plan, state model, resp *resource.ModifyPlanResponse) {
	if r.Provider.IsApplying() || plan.Disks.IsUnknown() || !plan.Host.Equal(state.Host) || !state.Running.ValueBool() {
		return
	}
	wanted, changed := plan.changedDisks(ctx, state, &resp.Diagnostics)
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil || len(changed) == 0 {
		return
	}
	all, err := r.manager(h, state.Host.ValueString()).OpenFilesOfPlan(ctx, state.UUID.ValueString(), wanted, changed)
	if err != nil {
		tflog.Warn(ctx, "Which files the guest has open is not known",
			map[string]any{"machine": state.Name.ValueString(), "error": err.Error()})
		return
	}
	ends := !plan.Running.ValueBool() || len(resp.RequiresReplace) > 0
	for _, f := range all {
		plan.warnOfOpenFile(f, ends, &resp.Diagnostics)
	}
}

// changedDisks are the keys of disks that are changed, or pending for the next start, and the known volumes by key.
func (m model) changedDisks(ctx context.Context, state model, diags *diag.Diagnostics) (wanted map[string]volume.Volume, changed []string) {
	wanted = map[string]volume.Volume{}
	disks, pending := m.disks(), state.pending(ctx, diags)
	for key, was := range state.disks() {
		is, has := disks[key]
		if v, ok, _ := tfvalue.VolumeFrom(is.Volume); has && ok {
			wanted[key] = v
		}
		if !has || !was.Volume.Equal(is.Volume) || slices.Contains(pending, "disk "+key) {
			changed = append(changed, key)
		}
	}
	return wanted, changed
}

// warnOfOpenFile warns of what an apply does about a file that only the guest still has. Of several warnings with one summary Terraform
// shows only the first.
func (m model) warnOfOpenFile(f machine.OpenFile, ends bool, diags *diag.Diagnostics) {
	name := m.Name.ValueString()
	how := fmt.Sprintf("Machine %s has a file of disk %s open that is gone", name, f.Key)
	does := "An apply does not take it from the running guest: it is refused, or changes what the next start opens. With allow_restart = " +
		"true, an apply discards what the guest has written."
	switch {
	case f.Moved:
		how = fmt.Sprintf("Machine %s has another file of disk %s open", name, f.Key)
		does = "Until then an apply is refused, also with allow_restart = true."
		if ends {
			does = "This apply stops the machine, and its next start opens the file that the state names."
		}
	case ends:
		does = "This apply discards what the guest has written, because it stops the machine."
	case m.AllowRestart.ValueBool():
		does = "This apply discards what the guest has written, because allow_restart = true allows it to. To keep it, do not apply: set " +
			"allow_restart = false, or save it first."
	}
	diags.AddAttributeWarning(diskPath(f.Key), how, fmt.Sprintf("On host %s, %s\n\n%s", m.Host.ValueString(), f.Explain(name), does))
}
