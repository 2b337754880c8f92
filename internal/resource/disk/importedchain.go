package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkChain refuses to adopt an imported disk with another master than the one below it in a domain: an overlay's header never names
// network storage, but the running chain and the metadata of machines do. If none of them knows it, a warning says so.
func (r *disk) checkChain(ctx context.Context, h *host.Host, plan, state model, v host.StorageVolume, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	if !known || plan.isOverShared() {
		return // the header always names shared images
	}
	var master []volume.Image
	if plan.isOver() {
		of, _ := plan.master(ctx, diags)
		master = of.Images
	}
	uses, err := guard.Users(ctx, state.Host.ValueString(), h, own.Images[0])
	if err != nil {
		addError(diags, state, "The chain of the imported disk is not known", err)
		return
	}
	if n := slices.IndexFunc(uses, func(u guard.Use) bool { return isUnnamed(u, v) }); n >= 0 {
		u := uses[n]
		diags.AddAttributeError(plan.masterPath(), "A master that the header does not reference", fmt.Sprintf(
			"Disk %[1]s is %[2]s in domain %[3]s on host %[4]s (disk %[5]s), and its header names none. If "+
				"--copy-storage-inc left it out, shut the domain down, enter it (qemu-img rebase -u -F <format> -b %[6]s %[7]s), and "+
				"import it with that source. If it needs none, edit the definition: virsh edit %[3]s.",
			state.ID.ValueString(), overlayOf(below(u)), u.Domain, u.Host, u.Device.Key, below(u)[0].Name, v.Path))
		return
	}
	uses = slices.DeleteFunc(uses, func(u guard.Use) bool { return isOutdated(u, v) })
	if u := contradiction(uses, master); u != nil {
		diags.AddAttributeError(plan.masterPath(), "Another master than it has", fmt.Sprintf(
			"The imported disk %s is %s in domain %s on host %s (disk %s), and can't be made %s. Give it the source and the copy_mode "+
				"that it was made with.", state.ID.ValueString(), overlayOf(below(*u)), u.Domain, u.Host, u.Device.Key, overlayOf(master)))
		return
	}
	isNetwork := len(master) > 0 && master[0].Type == "network"
	isUnproven := v.Backing == "" && v.Format == "qcow2" && (isNetwork || len(master) == 0) && !containsProof(uses)
	if isUnproven && isNetwork && state.isWritten(v) {
		diags.AddAttributeError(plan.masterPath(), "Written to without a master", fmt.Sprintf(
			"The imported disk %s has been written to since its import, and its head names no master. Over %s it may be a mix of two "+
				"disks. If it is an overlay of that, import it again (terraform state rm).", state.ID.ValueString(), master[0].Name))
		return
	}
	if isUnproven && (isNetwork || !plan.Source.Equal(state.Source) || state.UsageType.IsNull()) {
		diags.AddAttributeWarning(plan.masterPath(), "Nothing tells what disk "+state.ID.ValueString()+" is made over", fmt.Sprintf(
			"The head of the imported disk %s names no master, as that of an overlay of network storage never does, and no domain uses "+
				"the disk. It is taken for %s, because the configuration says so. If that is wrong, its guest finds a mix of two disks.",
			state.ID.ValueString(), overlayOf(master)))
	}
}

// isWritten reports whether the disk's file was changed since its import.
func (m model) isWritten(v host.StorageVolume) bool {
	return m.Imported != nil && m.Imported.Modified != "" && m.Imported.Modified != v.Modified
}

// isUnnamed reports whether a domain has a local master below the image that neither the image's header nor the machine's metadata for this
// host has. A migrated machine keeps the metadata of its former host.
func isUnnamed(u guard.Use, v host.StorageVolume) bool {
	return v.Format == "qcow2" && v.Backing == "" && !slices.Contains(u.Image().Hosts, u.Host) && len(below(u)) > 0 &&
		!below(u)[0].IsRemote()
}

// isOutdated reports whether only a persistent definition has a chain below the image, and the image's header was rebased since.
func isOutdated(u guard.Use, v host.StorageVolume) bool {
	return !u.Live && !u.Saved && v.Format == "qcow2" && len(below(u)) > 0 && content.IsOther(v.Backing, v.Path, below(u)[0])
}

// below is the chain below the image in a use.
func below(u guard.Use) []volume.Image { return u.Device.Volume.Images[u.Depth+1:] }

// isProof reports whether a use knows the whole chain below the image: a running domain does, and so does a machine with this chain in its
// metadata. A definition that was not created by virtclaim may leave it to the image's header.
func isProof(u guard.Use) bool {
	return u.Live || u.Saved || len(u.Image().Hosts) > 0 || len(below(u)) > 0
}

func containsProof(uses []guard.Use) bool {
	for _, u := range uses {
		if isProof(u) {
			return true
		}
	}
	return false
}

// contradiction returns a use of the disk over another chain than the master; nil when there is none.
func contradiction(uses []guard.Use, master []volume.Image) *guard.Use {
	for _, u := range uses {
		if isProof(u) && !isSameChain(below(u), master, u.Host) {
			return &u
		}
	}
	return nil
}

// isSameChain compares two chains as far as both are known. Servers that can't be told apart are treated as the same.
func isSameChain(a, b []volume.Image, host string) bool {
	if (len(a) == 0) != (len(b) == 0) {
		return false
	}
	for n := range min(len(a), len(b)) {
		was, is := a[n], b[n]
		was.Hosts, is.Hosts = []string{host}, []string{host}
		if same, certain := volume.SameMaster(was, is); certain && !same {
			return false
		}
	}
	return true
}

// overlayOf describes the master of a disk.
func overlayOf(images []volume.Image) string {
	if len(images) == 0 {
		return "a disk without a master"
	}
	return "an overlay of " + images[0].Name
}

// checkPool refuses a usage type with another pool than the imported disk's: recreated, the disk would be in that pool.
func (r *disk) checkPool(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	if pool := r.plannedPool(ctx, plan, state, diags); pool != state.Pool.ValueString() {
		diags.AddAttributeError(path.Root("usage_type"), "Another pool than the disk is in", fmt.Sprintf(
			"The usage type %s of host %s is the pool %s, but the imported disk %s is in pool %s. Give it the usage type of that pool, "+
				"or add one to the storage of the host.", plan.UsageType.ValueString(), plan.Host.ValueString(), pool,
			state.ID.ValueString(), state.Pool.ValueString()))
	}
}

// plannedPool is the pool of the planned usage type, or that of the state while it is not known.
func (r *disk) plannedPool(ctx context.Context, plan, state model, diags *diag.Diagnostics) string {
	if plan.UsageType.IsUnknown() || plan.Host.IsUnknown() || !r.Provider.Ready() {
		return state.Pool.ValueString()
	}
	key := plan.Host.ValueString()
	places, err := r.Provider.UsageTypes(key).Places(ctx)
	place, known := places[plan.UsageType.ValueString()]
	if err == nil && known && place.Pool == "" {
		var h *host.Host
		if h, err = r.Provider.Hosts.Host(key); err == nil {
			place.Pool, err = h.PoolOfTarget(ctx, place.Folder)
		}
		if errors.Is(err, host.ErrNotFound) {
			place.Pool, err = "of "+place.Folder+", which is not there yet", nil
		}
	}
	if err != nil {
		addError(diags, state, "The pool of the usage type is not known", err)
	}
	if err != nil || !known {
		return state.Pool.ValueString()
	}
	return place.Pool
}

// checkFormat refuses to adopt an imported disk with another format, which would replace it.
func (m model) checkFormat(state model, diags *diag.Diagnostics) (same bool) {
	same = m.Format.IsUnknown() || state.Format.IsNull() || m.Format.Equal(state.Format)
	if !same {
		diags.AddAttributeError(path.Root("format"), "Another format than the disk has", fmt.Sprintf(
			"The imported disk %s is %s, and not %s as this configuration makes it. If it is to be adopted, set format = %q, where its "+
				"source allows that.", state.ID.ValueString(), state.Format.ValueString(), m.Format.ValueString(),
			state.Format.ValueString()))
	}
	return same
}

// noteMasters records the masters of an imported overlay on the host. A running machine that already has it is not checked again. The next
// start reports a master that differs from an existing record.
func noteMasters(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	master, found := plan.master(ctx, diags)
	if !known || !found || !plan.isOver() {
		return
	}
	err := content.CheckMasterRecords(ctx, h, slices.Concat(own.Images[:1], master.Images))
	if err != nil && !errors.Is(err, content.ErrMasterChanged) {
		diags.AddAttributeWarning(plan.masterPath(), "The master of the imported disk could not be recorded", fmt.Sprintf(
			"Whether the master of disk %s is written to or replaced before a machine is started with the disk will not be noticed: %s.",
			state.ID.ValueString(), err))
	}
}
