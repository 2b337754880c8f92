package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// obstacles are the reasons why a machine can't be moved to the host of the plan, each with what would help.
func (r *virtualMachine) obstacles(ctx context.Context, plan, state model, offline bool, diags *diag.Diagnostics) (why []string) {
	why = plan.localDisks(state, diags)
	offline = offline || !state.Running.ValueBool()
	if !offline {
		why = append(why, plan.notLive(state)...)
	}
	if strings.Contains(plan.DevicesXML.ValueString(), "<hostdev") && strings.Contains(state.DevicesXML.ValueString(), "<hostdev") {
		why = append(why, "it has a device of its host (<hostdev> in devices_xml). Take that out before")
	}
	if len(why) > 0 || !r.Provider.Ready() {
		return why
	}
	return append(why, r.onTarget(ctx, plan, state, offline)...)
}

// localDisks are the disks that the machine keeps and that the other host can't open. Media are exchanged instead.
func (m model) localDisks(state model, diags *diag.Diagnostics) (why []string) {
	disks, before := m.disks(), state.disks()
	for _, key := range slices.Sorted(maps.Keys(before)) {
		is, stays := disks[key]
		if !stays || domainxml.IsDrive(before[key].Device.ValueString()) {
			continue
		}
		v, known, found := tfvalue.VolumeFrom(before[key].Volume)
		diags.Append(found...)
		planned, ok, _ := tfvalue.VolumeFrom(is.Volume)
		if ok && volume.SameImages(v, planned) {
			v = planned // a binding that gets the host in this plan
		}
		if !known || ok && volume.IsPair(v, planned, state.Host.ValueString(), m.Host.ValueString()) {
			continue
		}
		for _, i := range v.Images {
			switch {
			case !slices.Contains(i.Hosts, state.Host.ValueString()):
				why = append(why, fmt.Sprintf("its disk %s is %s, which %s loses in this plan. Keep both hosts until it has moved", key,
					i.Name, state.Host.ValueString()))
			case !slices.Contains(i.Hosts, m.Host.ValueString()):
				why = append(why, fmt.Sprintf("its disk %s is %s, which is there for %s only. Bind it for both hosts, or give a "+
					"virtclaim_disk the new host, too", key, i.Name, strings.Join(i.Hosts, ", ")))
			case mayDiffer(i):
				why = append(why, fmt.Sprintf("its disk %s is %s, which may be another device on each host. Name it by /dev/disk/by-id",
					key, i.Name))
			default:
				continue
			}
			break
		}
	}
	return why
}

// mayDiffer reports whether a path that was bound for several hosts may be other storage on each: neither a claim nor its name tells.
func mayDiffer(i volume.Image) bool {
	return i.Type != "network" && i.Binding != "" && volume.ParseBinding(i.Binding).Claim == "" &&
		!strings.HasPrefix(i.Name, "/dev/disk/by-id/")
}

// notLive is what QEMU does not migrate while the guest runs.
func (m model) notLive(state model) (why []string) {
	const instead = "Use migration = { mode = \"offline\" }"
	disks := state.disks()
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if _, stays := m.disks()[key]; stays && disks[key].Ephemeral.ValueBool() {
			why = append(why, fmt.Sprintf("its disk %s is ephemeral, and what its guest has written there stays behind. %s", key,
				instead))
		}
	}
	if len(m.filesystems()) > 0 && len(state.filesystems()) > 0 {
		why = append(why, "it has filesystems, which QEMU can't migrate while the guest runs. "+instead)
	}
	return why
}

// onTarget asks the hosts for what stands in the way there. What one does not answer is asked again by the apply, or refused by libvirt.
func (r *virtualMachine) onTarget(ctx context.Context, plan, state model, offline bool) (why []string) {
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	from, err := r.Provider.Hosts.Host(state.Host.ValueString())
	to, failed := r.Provider.Hosts.Host(plan.Host.ValueString())
	if err != nil || failed != nil {
		return nil // it has an error already
	}
	other, err := to.LookupByName(ctx, plan.Name.ValueString())
	switch {
	case errors.Is(err, host.ErrNotFound):
		err = nil
	case err == nil && other != state.UUID.ValueString():
		why = append(why, fmt.Sprintf("host %s has another domain of the name %s. Rename or remove one of the two", to.Key,
			plan.Name.ValueString()))
	}
	if err == nil && !offline {
		var lacks string
		if lacks, err = lacking(ctx, from, to, to.Key, state.UUID.ValueString()); lacks != "" {
			why = append(why, lacks)
		}
	}
	if err != nil {
		tflog.Warn(ctx, "What stands in the way of a move is not known", map[string]any{"host": to.Key, "error": err.Error()})
	}
	return why
}
