package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// relocates reports whether the disk's content goes to another host in this plan. Seeds and environments are made there instead.
func (m model) relocates(state model) bool {
	return !state.Host.IsNull() && m.hostsKnown() && !m.Host.Equal(state.Host) && !m.isShared() && !state.isShared() && !m.isUndecided() &&
		!m.isComposed() && (!state.isImported() || m.Source.Equal(state.Source))
}

// planRelocation refuses what can't go to another host, as far as it is known.
func (r *disk) planRelocation(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	at := path.Root("host")
	if state.isImported() && state.Imported.Found {
		diags.AddAttributeError(at, "The moved disk is on another host", fmt.Sprintf("It was found on host %s alone. If it is on host %s, "+
			"start its storage pool there, so that it is found. If not, set host = %[1]q, and move it in a later apply.",
			state.Host.ValueString(), plan.Host.ValueString()))
	}
	plan.refuseGrowth(ctx, state, diags)
	if own.Images[0].Type != "file" {
		diags.AddAttributeError(at, "Only a file moves", fmt.Sprintf("Disk %s is %s. Make a clone of it on host %s: a virtclaim_disk of "+
			"another name.", state.ID.ValueString(), own.Images[0].Name, plan.Host.ValueString()))
	}
	if !r.Provider.Ready() || r.Provider.IsApplying() {
		return
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil {
		return // its refresh has said so
	}
	names, err := content.OverlaysOf(ctx, h, own.Images[0].Name)
	if err == nil && len(names) > 0 {
		diags.AddAttributeError(at, "A master stays on its host", masterStays(state, plan, names))
	}
	to, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	pool := ""
	if err == nil && !plan.UsageType.IsUnknown() {
		pool, err = r.Provider.UsageTypes(to.Key).Existing(ctx, to, plan.UsageType.ValueString())
	}
	if err != nil || pool == "" {
		return // the apply makes it, or says why not
	}
	if err := checkRoom(ctx, h, to, state, pool); errors.Is(err, errNoRoom) {
		diags.AddAttributeError(at, "Too little room for the disk", err.Error()+".")
	}
}

// refuseGrowth refuses to grow a disk while it moves: what is prepared has the size of what is copied.
func (m model) refuseGrowth(ctx context.Context, state model, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	if size := m.grownSize(state); known && own.Capacity != nil && size > *own.Capacity {
		diags.AddAttributeError(path.Root("size"), "A disk that moves does not grow", fmt.Sprintf(
			"The move of disk %s to host %s is not complete. Leave its size at %s, and change it in another apply.", m.label(),
			m.Host.ValueString(), tfvalue.QuantityOfBytes(*own.Capacity).ValueString()))
	}
}

// errNoRoom is the error of a storage pool that is too full for a disk.
var errNoRoom = errors.New("it does not fit")

func masterStays(state, plan model, overlays []string) string {
	return fmt.Sprintf("Disk %s can't move to host %s: volumes are overlays of it (%s). Leave its host, and make another disk for %[2]s; "+
		"what is to move without it needs copy_mode = \"clone\".", state.ID.ValueString(), plan.Host.ValueString(),
		strings.Join(overlays, ", "))
}

// planRelocated is the volume of a disk that goes to another host: the same one, at a path that the apply knows.
func (m model) planRelocated(is volume.Volume) types.Object {
	v, u := m.asConfigured(is), tfvalue.Unknowns{Place: true}
	below := v.Images[1:]
	if v.Images = v.Images[:1]; !m.isOverShared() {
		return m.over(v, u)
	}
	shared := volume.Volume{Images: m.shared(slices.Clone(below)...)}
	return tfvalue.Over(v, u, tfvalue.VolumeObject(shared, tfvalue.Unknowns{Local: true, Format: true}))
}

// checkRoom refuses a disk that has allocated more than the storage pool has left.
func checkRoom(ctx context.Context, from, to *host.Host, state model, pool string) error {
	need, err := from.Allocated(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if err != nil {
		return err
	}
	free, err := to.PoolFree(ctx, pool)
	if err == nil && free < need {
		err = fmt.Errorf("%w: storage pool %s of host %s has %d bytes left, and the disk has %d", errNoRoom, pool, to.Key, free, need)
	}
	return err
}
