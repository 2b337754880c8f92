package virtualmachine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// names are those under which the disks of a removed machine are found by one that replaces it, perhaps on another host.
func (m model) names() []string {
	return []string{m.Host.ValueString() + "/" + m.Name.ValueString(), m.Name.ValueString()}
}

// disksBefore are the disks in the state, or those of the machine that this process has removed for this one: when Terraform applies a
// replacement, it gives the creation neither the former state nor what the plan noted.
func (r *virtualMachine) disksBefore(plan, state model) types.Map {
	if state.ID.IsNull() && r.Provider != nil {
		for _, name := range plan.names() {
			if disks, ok := r.Provider.RemovedDisks.Load(name); ok {
				return disks.(types.Map)
			}
		}
	}
	return state.Disks
}

// keepTargets gives the disks without a target in the configuration the one that they had before, unless that is another bus's, or may be
// given to another disk. A new one is unknown.
func (m *model) keepTargets(before types.Map, given map[string]diskModel) {
	was, is, taken := model{Disks: before}.disks(), m.disks(), map[types.String]bool{}
	for _, d := range given {
		taken[d.Target] = true
	}
	m.changeDisks(func(key string, values map[string]attr.Value) {
		if !given[key].Target.IsNull() {
			return
		}
		values["target"] = was[key].Target
		unsure := taken[was[key].Target] || taken[types.StringUnknown()]
		if prefix := domainxml.TargetPrefix(is[key].Bus.ValueString()); unsure ||
			!strings.HasPrefix(was[key].Target.ValueString(), prefix) {
			values["target"] = types.StringUnknown()
		}
	})
}

// changeDisks changes the values of the disks that are known.
func (m *model) changeDisks(change func(key string, values map[string]attr.Value)) {
	disks := m.Disks.Elements()
	for key, disk := range disks {
		if o, ok := disk.(types.Object); ok && !o.IsUnknown() {
			values := o.Attributes()
			change(key, values)
			disks[key] = types.ObjectValueMust(diskTypes, values)
		}
	}
	if len(disks) > 0 {
		m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
	}
}

// bootDisks are the disks of a machine that has several, and is not told from which one to boot: the first one counts. A disk without a
// target gets the first one that is free.
func (m model) bootDisks() []string {
	told, targets := !m.Boot.IsNull(), map[string]string{}
	for key, d := range m.disks() {
		told = told || !d.BootOrder.IsNull()
		if !domainxml.IsDrive(d.Device.ValueString()) {
			targets[key] = cmp.Or(d.Target.ValueString(), domainxml.TargetPrefix(d.Bus.ValueString())+"a~")
		}
	}
	for _, i := range m.interfaces() {
		told = told || !i.BootOrder.IsNull()
	}
	if told || len(targets) < 2 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(targets),
		func(a, b string) int { return cmp.Or(cmp.Compare(targets[a], targets[b]), cmp.Compare(a, b)) })
}

// warnOfBootDisk says from which of several disks a new machine boots, and when that may change.
func (m model) warnOfBootDisk(state model, diags *diag.Diagnostics) {
	keys := m.bootDisks()
	if len(keys) == 0 || slices.Equal(keys, state.bootDisks()) {
		return
	}
	diags.AddAttributeWarning(path.Root("disks"), "The boot disk of machine "+m.Name.ValueString()+" is not configured",
		fmt.Sprintf("Machine %s on host %s boots from disk %s, because that has the first target, and none of its disks (%s) has a "+
			"boot_order. If it is to boot from another one, give that boot_order = 1.", m.Name.ValueString(), m.Host.ValueString(), keys[0],
			strings.Join(keys, ", ")))
}
