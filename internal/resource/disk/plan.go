package disk

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var sourcePath = path.Root("source").AtName("volume")

// checkClusterSize refuses cluster sizes that QEMU does not support.
func (m model) checkClusterSize(diags *diag.Diagnostics) {
	if m.ClusterSize.IsNull() || m.ClusterSize.IsUnknown() {
		return
	}
	bytes, err := m.ClusterSize.Bytes()
	if err != nil || bytes < 1024 || bytes > 2<<20 || bytes&(bytes-1) != 0 || m.Format.ValueString() == "raw" {
		diags.AddAttributeError(path.Root("cluster_size"), "Unusable cluster size",
			"The clusters of a qcow2 image have from 1Ki to 2Mi bytes, a power of two; a raw image has none.")
	}
}

// ModifyPlan plans the attributes of the volume. Neither unknown values nor a master with new servers or hosts force a replacement.
func (r *disk) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if providerdata.RefuseUnread(ctx, req, &resp.Diagnostics) {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.warnOfLoss(ctx, req, resp, "Destroying", "")
		var state model
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
		if r.Provider.Ready() && !resp.Diagnostics.HasError() {
			r.warnOfMasters(ctx, state, &resp.Diagnostics) // Terraform shows no warning of the refresh before a destroy
		}
		return
	}
	var plan model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	tfvalue.CheckReserved(req, resp, "name", "name_prefix")
	plan.planFormat()
	r.Provider.PlanPlace(ctx, req, plan.Host, &plan.UsageType, &resp.Diagnostics)
	plan.checkClusterSize(&resp.Diagnostics)
	plan.checkMaster(ctx, &resp.Diagnostics)
	if req.State.Raw.IsNull() {
		r.planHosts(ctx, plan, model{}, &resp.Diagnostics)
		if r.Provider.Ready() {
			r.Provider.WarnOfPool(ctx, plan.Host, plan.UsageType, &resp.Diagnostics)
		}
		if isReplacing(ctx, req, &resp.Diagnostics) {
			r.judge(ctx, req.Config, plan, model{}, &resp.Diagnostics)
		}
		plan.checkSize(ctx, &resp.Diagnostics)
		plan.Digest = r.planNewDigest(ctx, plan, &resp.Diagnostics)
		plan.planNew(ctx, &resp.Diagnostics)
	} else {
		r.planChange(ctx, req, resp, &plan)
	}
	r.checkWriters(plan, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(tfvalue.Set(ctx, resp.Plan.Schema, &resp.Plan.Raw, plan)...)
	}
}

// checkMaster refuses a master that the host can't open, as far as it is known. Apply checks again.
func (m model) checkMaster(ctx context.Context, diags *diag.Diagnostics) {
	v, known := m.master(ctx, diags)
	if m.hasNoVolume() {
		diags.AddAttributeError(sourcePath, "No volume", "The volume of the source is null, or has no image. Take it from a "+
			"virtclaim_volume_binding or virtclaim_disk.")
	}
	if !known || m.Host.IsUnknown() {
		return
	}
	for _, i := range v.Images {
		for _, key := range missing(i.Hosts, m.hostKeys()) {
			diags.AddAttributeError(sourcePath, "Host not in the binding", fmt.Sprintf(
				"The master %s is there for the hosts %s, not for %s. Add %[3]s to the hosts of its binding; a disk of a host can only be "+
					"the master of disks of the same host.", i.Name, strings.Join(i.Hosts, ", "), key))
		}
		if others := missing(m.hostKeys(), i.Hosts); i.IsDisk() && m.isOver() && len(others) > 0 && m.hostsKnown() {
			diags.AddAttributeError(path.Root(hostsName), "Another host would not see the overlay", fmt.Sprintf(
				"Machines on host %s may write to the master %s, and must see that it has overlays. Give this disk the same hosts, in a "+
					"pool that they share, or make a clone (copy_mode = \"clone\").", others[0], i.Name))
		}
		if i.AccessMode == volume.WriteShared && m.mode() != volume.Clone {
			diags.AddAttributeError(path.Root("copy_mode"), "An overlay of what others write", fmt.Sprintf(
				"The master %s is write-shared: machines change it under the overlay, whose content would be torn. Use copy_mode = "+
					"\"clone\" while none of them runs, or bind it read-shared.", i.Name))
		}
	}
}

// missing are the hosts of all that are not in some.
func missing(some, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(key string) bool { return slices.Contains(some, key) })
}

// hasNoVolume reports whether the source is known to have no volume to copy.
func (m model) hasNoVolume() bool {
	v := m.sourceVolume()
	if m.Source.IsNull() || v.IsUnknown() || m.kind() != "" && m.kind() != fromVolume {
		return false
	}
	images, ok := v.Attributes()["images"].(types.List)
	return v.IsNull() || !ok || !images.IsUnknown() && len(images.Elements()) == 0
}

// checkSize refuses a new disk that is smaller than its master, or than its file system.
func (m model) checkSize(ctx context.Context, diags *diag.Diagnostics) {
	size := m.size()
	if m.kind() == fromRoot && size != 0 && size < rootfs.Size {
		diags.AddAttributeError(path.Root("size"), "Smaller than the file system", fmt.Sprintf(
			"The disk is to have %s, but the file system of source.root_filesystem has %s, whatever is in it. Leave size out to have as "+
				"many, or ask for more.",
			tfvalue.QuantityOfBytes(size).ValueString(), tfvalue.QuantityOfBytes(rootfs.Size).ValueString()))
	}
	v, known := m.master(ctx, diags)
	if known && size != 0 && v.Capacity != nil && size < *v.Capacity {
		diags.AddAttributeError(path.Root("size"), "Smaller than the master",
			fmt.Sprintf("The disk is to have %s, but its master has %s. Leave size out to have as many, or ask for more.",
				tfvalue.QuantityOfBytes(size).ValueString(), tfvalue.QuantityOfBytes(*v.Capacity).ValueString()))
	}
}

// planFormat defaults to qcow2, and to raw for what is composed. The format of a downloaded image or a file depends on its content. While
// the kind of source is unknown, so is the format.
func (m *model) planFormat() {
	if !m.Format.IsUnknown() || m.isUndecided() {
		return
	}
	switch kind := m.kind(); {
	case kind == fromURL, kind == fromFile:
	case m.isComposed():
		m.Format = types.StringValue("raw")
	default:
		m.Format = types.StringValue("qcow2")
	}
}

// planNew plans the volume of a new disk.
func (m *model) planNew(ctx context.Context, diags *diag.Diagnostics) {
	m.ImageConfiguration = types.ObjectNull(tfvalue.ImageConfigurationTypes)
	if m.isUndecided() || m.kind() == fromRoot {
		m.ImageConfiguration = types.ObjectUnknown(tfvalue.ImageConfigurationTypes)
	}
	master, known := m.master(ctx, diags)
	if m.isUndecided() || !m.hostsKnown() || m.Size.IsUnknown() || m.CopyMode.IsUnknown() {
		m.Volume = tfvalue.UnknownVolume()
		return
	}
	v := volume.Volume{
		CopyOnRead: m.mode() == volume.CopyOnRead,
		Images:     []volume.Image{m.top(host.StorageVolume{Format: m.Format.ValueString()}, "")},
	}
	if size := m.size(); size != 0 {
		v.Capacity = &size
	} else if known && master.Images[0].IsDisk() { // other masters are measured when they are copied
		v.Capacity = master.Capacity
	}
	m.Volume = m.over(v, tfvalue.Unknowns{Capacity: v.Capacity == nil, Local: true, Format: m.Format.IsUnknown()})
}

// over appends the backing chain to the disk's own image: the images of its master, or a shared image, which is unknown before it exists.
func (m model) over(v volume.Volume, u tfvalue.Unknowns) types.Object {
	switch {
	case m.isOver():
		v.Images = v.Images[:1]
		return tfvalue.ReadBelow(tfvalue.Over(v, u, m.sourceVolume()))
	case m.kind() == fromRoot && len(v.Images) == 1: // how many layers there are is not known, either
		return tfvalue.Over(v, u, tfvalue.UnknownVolume())
	case m.kind() == fromContainer && len(v.Images) == 1:
		shared := volume.Volume{Images: m.shared(volume.Image{})}
		return tfvalue.Over(v, u, tfvalue.VolumeObject(shared, tfvalue.Unknowns{Local: true, Format: true}))
	}
	return tfvalue.VolumeObject(v, u)
}

// planChange plans whether an existing disk is replaced, and its volume if not.
func (r *disk) planChange(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan *model) {
	var state model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...); resp.Diagnostics.HasError() {
		return
	}
	state.loadImported(ctx, req.Private, &resp.Diagnostics)
	var asked types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("format"), &asked)...)
	if r.adoptFormat(ctx, asked, &state, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	if r.planHosts(ctx, *plan, state, &resp.Diagnostics); plan.moves(state) {
		plan.ID, plan.Pool = types.StringUnknown(), types.StringUnknown() // that of its other host may have another name
	}
	if plan.relocates(state) {
		plan.ID, plan.Pool = types.StringUnknown(), types.StringUnknown()
	} else if r.isUnfinished(ctx, state, req.Private, &resp.Diagnostics) {
		plan.ID = types.StringUnknown() // so that the plan has a change
	}
	plan.Digest, plan.ImageConfiguration = r.planOwnDigest(ctx, *plan, state, &resp.Diagnostics), plan.planConfiguration(state)
	if state.isImported() && !plan.checkFormat(state, &resp.Diagnostics) {
		return
	}
	resp.RequiresReplace = r.replacedBy(ctx, *plan, state, &resp.Diagnostics)
	if len(resp.RequiresReplace) > 0 && r.Provider.IsApplying() {
		addChanged(&resp.Diagnostics, state, resp.RequiresReplace)
		return
	}
	if len(resp.RequiresReplace) > 0 {
		why := becauseOf(resp.RequiresReplace) + plan.restIsUnproven(ctx) + r.ofTakenName(ctx, *plan, state, &resp.Diagnostics)
		r.warnOfLoss(ctx, req, resp, "Replacing", why)
		if r.judge(ctx, req.Config, *plan, state, &resp.Diagnostics); r.Provider.Ready() {
			r.Provider.WarnOfPool(ctx, plan.Host, plan.UsageType, &resp.Diagnostics)
		}
		return
	}
	if plan.relocates(state) {
		r.planRelocation(ctx, *plan, state, &resp.Diagnostics)
	} else if loadFormer(ctx, req.Private, &resp.Diagnostics) != nil {
		plan.refuseGrowth(ctx, state, &resp.Diagnostics)
	}
	if state.isImported() {
		r.checkBacking(ctx, *plan, state, &resp.Diagnostics)
	}
	warnOfNoEffect(*plan, state, &resp.Diagnostics)
	r.warnOfUnknownMaster(ctx, *plan, state, &resp.Diagnostics)
	r.warnOfPool(*plan, state, &resp.Diagnostics)
	is, known := state.made(ctx, &resp.Diagnostics)
	if !known {
		return
	}
	if size := plan.grownSize(state); size != 0 && size < *is.Capacity {
		// An error would prevent Terraform from destroying the disk, because it plans an apply before that, too.
		const later = "\n\nThe apply of this plan fails; a destroy does not."
		if state.isImported() {
			resp.Diagnostics.AddAttributeError(path.Root("size"), cannotShrink, plan.shrinks(state, *is.Capacity))
			return
		}
		resp.Diagnostics.AddAttributeWarning(path.Root("size"), cannotShrink, plan.shrinks(state, *is.Capacity)+later)
	} else if size != 0 {
		is.Capacity = &size
	}
	plan.Size = state.Size.OrSame(plan.Size)
	if plan.isUndecided() && state.isImported() || !plan.hostsKnown() {
		plan.Volume = tfvalue.UnknownVolume() // it may be adopted as any kind
		return
	}
	if plan.relocates(state) {
		plan.Volume = plan.planRelocated(is)
		return
	}
	plan.Volume = plan.over(plan.asConfigured(is), tfvalue.Unknowns{Capacity: plan.Size.IsUnknown()})
	if plan.Volume.Equal(tfvalue.ReadBelow(state.Volume)) {
		plan.Volume = state.Volume // a state from before overlays were described as reading only is no change
	}
}

// replacedBy are the attributes whose change replaces the disk. A usage type that was renamed has the same pool.
func (r *disk) replacedBy(ctx context.Context, plan, state model, diags *diag.Diagnostics) path.Paths {
	paths := plan.otherDisk(ctx, state, diags)
	if plan.relocates(state) && !slices.ContainsFunc(paths, isNoPlace) {
		return nil
	}
	return slices.DeleteFunc(paths, func(p path.Path) bool {
		if plan.moves(state) && (p.Equal(path.Root("host")) || p.Equal(path.Root("usage_type"))) { // its pool must be the same folder
			return true
		}
		return p.Equal(path.Root("usage_type")) && r.plannedPool(ctx, plan, state, diags) == state.Pool.ValueString()
	})
}

// isNoPlace reports whether an attribute is more than the place of a disk.
func isNoPlace(p path.Path) bool {
	return !p.Equal(path.Root("host")) && !p.Equal(path.Root("usage_type"))
}

// otherDisk are the attributes whose change makes it another disk. Unknown values don't. The creation attributes of an imported disk are
// null in state, and adopted from the first configuration.
func (m model) otherDisk(ctx context.Context, state model, diags *diag.Diagnostics) (paths path.Paths) {
	for _, a := range []struct {
		name    string
		was, is types.String
	}{
		{"host", state.Host, m.Host},
		{"name", state.Name, m.Name},
		{"name_prefix", state.NamePrefix, m.NamePrefix},
		{"usage_type", state.UsageType, m.UsageType},
		{"copy_mode", state.CopyMode, m.CopyMode},
		{"format", state.Format, m.Format},
	} {
		if !a.is.IsUnknown() && !a.is.Equal(a.was) && (!state.isImported() || !isAdopted(a.name, a.was)) {
			paths = append(paths, path.Root(a.name))
		}
	}
	if m.otherMaster(ctx, state, diags) {
		paths = append(paths, m.masterPath())
	}
	return append(paths, m.otherContent(ctx, state, diags)...)
}

// isAdopted reports whether an imported disk takes an attribute from its configuration. What is wrong is refused, by checkBacking.
func isAdopted(name string, was types.String) bool {
	return was.IsNull() || name == "usage_type" || name == "copy_mode"
}

// masterPath is the master's path in the configuration.
func (m model) masterPath() path.Path {
	if kind := m.kind(); kind != "" {
		return childPath(kind)
	}
	return path.Root("source")
}

// addChanged is the error of a disk that turns out to need a replacement during the apply, when it can't be planned any more.
func addChanged(diags *diag.Diagnostics, state model, by path.Paths) {
	for _, p := range by {
		diags.AddAttributeError(p, "The disk changed during the apply", fmt.Sprintf(
			"%s of disk %s could not be known by the plan, and turns out to make it another disk. Its content was not touched. Plan and "+
				"apply again: the plan will say that the disk is replaced.", p, state.ID.ValueString()))
	}
}

// otherMaster reports whether the master is known to be another one, or none. Unknown values don't count, and the master of an imported
// disk is adopted, once.
func (m model) otherMaster(ctx context.Context, state model, diags *diag.Diagnostics) bool {
	if state.isImported() || m.isUndecided() {
		return false
	}
	if m.kind() != state.kind() {
		return true
	}
	was, ok := state.master(ctx, diags)
	is, known := m.master(ctx, diags)
	if !ok || !known || is.Images[0].Name == "" {
		return false
	}
	if volume.IsMoved(was.Images[0], is.Images[0]) && filepath.Base(was.Images[0].Name) == filepath.Base(is.Images[0].Name) {
		return false // its storage pool has another folder; an overlay whose header references the former path is not started
	}
	if m.CopyMode.ValueString() == string(volume.Clone) {
		// a clone does not depend on a master that is recreated, or deleted outside of Terraform
		was.Images[0].Generation = is.Images[0].Generation
	}
	same, certain := volume.SameMaster(was.Images[0], is.Images[0])
	if !certain {
		diags.AddAttributeError(sourcePath, "The identity of the master is not known", fmt.Sprintf(
			"The master was %s and is %s now, on servers none of which was one of its servers before. If it is the same storage, "+
				"move it with a server in common. If it is not, recreate the disk: terraform apply -replace=<address of this resource>.",
			was.Images[0].Name, is.Images[0].Name))
	}
	return certain && !same
}
