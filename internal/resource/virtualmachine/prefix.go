package virtualmachine

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	longestPrefix = 100
	// generated is the number of characters behind a name_prefix.
	generated = 10
)

// hasOtherPrefix reports whether an existing machine needs another name, because its prefix changes. A name that begins with the new prefix
// stays, as that of an imported machine.
func (m model) hasOtherPrefix(state model) bool {
	prefix := m.NamePrefix
	return isSet(prefix) && !prefix.Equal(state.NamePrefix) && !strings.HasPrefix(state.Name.ValueString(), prefix.ValueString())
}

// reserveName gives a new machine its name, of which there is one in this process.
func (r *virtualMachine) reserveName(ctx context.Context, plan *model, diags *diag.Diagnostics) bool {
	reserve := func(name string) bool { return r.Provider.ReserveName(plan.Host.ValueString() + "/" + name) }
	if !plan.Name.IsUnknown() {
		if !reserve(plan.Name.ValueString()) {
			diags.AddAttributeError(path.Root("name"), "Two machines of one name", fmt.Sprintf("Another resource of this configuration "+
				"makes the machine %s/%s. Give each its own name.", plan.Host.ValueString(), plan.Name.ValueString()))
			return false
		}
		return true
	}
	left, err := r.leftNames(ctx, *plan)
	if err != nil {
		addError(diags, *plan, "The machine could not be named", err)
		return false
	}
	for _, name := range append(left, plan.NamePrefix.ValueString()+strings.ToLower(rand.Text()[:generated])) {
		if reserve(name) {
			plan.Name = types.StringValue(name)
			break
		}
	}
	return true
}

// leftNames are the machines that interrupted creations of the same owner, prefix and disks have left: no state has them, and they may run.
func (r *virtualMachine) leftNames(ctx context.Context, plan model) (names []string, err error) {
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	if err != nil || r.Provider.Owner == "" {
		return nil, err
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	prefix := plan.NamePrefix.ValueString()
	for _, d := range domains {
		if d.Stored == "" || !strings.HasPrefix(d.Name, prefix) || len(d.Name) != len(prefix)+generated {
			continue
		}
		is, err := domainxml.Parse(d.Stored)
		if err == nil && is.Metadata.Phase == domainxml.Creating && is.Metadata.Owner == r.Provider.Owner && plan.hasDisksOf(is) {
			names = append(names, d.Name)
		}
	}
	return names, nil
}

// hasDisksOf reports whether the machine has the disks of another one, which therefore is not that of another resource: one disk at least
// is that of one machine only.
func (m model) hasDisksOf(other domainxml.Machine) bool {
	has, wants, isExclusive := map[string]string{}, map[string]string{}, false
	for key, disk := range other.Disks {
		for _, i := range disk.Volume.Images[:min(1, len(disk.Volume.Images))] {
			has[key] = i.Name
		}
	}
	for key, disk := range m.disks() {
		if v, ok, _ := tfvalue.VolumeFrom(disk.Volume); ok && len(v.Images) > 0 {
			wants[key] = v.Images[0].Name
			isExclusive = isExclusive || v.Images[0].AccessMode == volume.WriteExclusive
		}
	}
	return isExclusive && maps.Equal(has, wants)
}
