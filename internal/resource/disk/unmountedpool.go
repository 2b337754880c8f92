package disk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// filesystemKey is the key in private state of the size in bytes of the pool's filesystem. A pool whose filesystem is not mounted, as after
// a boot of the host, shows the empty folder below the mount point: all its disks seem to be deleted.
const filesystemKey = "filesystem"

// noteFilesystem saves that size unless there is one already.
func noteFilesystem(ctx context.Context, h *host.Host, m model, private tfvalue.PrivateState, diags *diag.Diagnostics) {
	if _, isNoted, _ := tfvalue.LoadPrivate[int64](ctx, private, filesystemKey, diags); isNoted {
		return
	}
	bytes, err := h.PoolCapacity(ctx, m.Pool.ValueString())
	if err != nil || bytes == 0 {
		tflog.Debug(ctx, "The filesystem of a disk is not known", map[string]any{"disk": m.ID.ValueString()})
		return
	}
	tfvalue.SavePrivate(ctx, private, filesystemKey, bytes, diags)
}

// otherFilesystem explains why the storage pool of a disk that is gone may not be mounted: its filesystem has another size than recorded;
// empty otherwise. It is no proof that the disk is lost: some filesystems change their size with other data.
func otherFilesystem(ctx context.Context, h *host.Host, m model, private tfvalue.PrivateReader, diags *diag.Diagnostics) string {
	was, isNoted, err := tfvalue.LoadPrivate[int64](ctx, private, filesystemKey, diags)
	if !isNoted || err != nil {
		return ""
	}
	pool, err := h.Pool(ctx, m.Pool.ValueString())
	if err != nil || !slices.Contains([]string{"dir", "fs", "netfs"}, pool.Type) || pool.Capacity == 0 || pool.Capacity == was {
		return ""
	}
	return fmt.Sprintf("the folder %[1]s of storage pool %[2]s is on a filesystem of %[3]d bytes, and was on one of %[4]d bytes when the "+
		"disk was created or first read", pool.Path, m.Pool.ValueString(), pool.Capacity, was)
}

// warnOfFilesystem keeps a disk in the state that is gone from a storage pool on another filesystem, and reports whether it does. The data
// of a blank disk in its place would be hidden as soon as the filesystem is mounted again.
func (r *disk) warnOfFilesystem(ctx context.Context, h *host.Host, m model, private tfvalue.PrivateReader, diags *diag.Diagnostics) bool {
	why := otherFilesystem(ctx, h, m, private, diags)
	if why == "" {
		return false
	}
	diags.AddWarning(fmt.Sprintf("The filesystem of disk %s may not be mounted", m.ID.ValueString()), fmt.Sprintf(
		"The disk is not in its storage pool on host %s, stays in the state, and is not created again: %s. Mount that, and refresh the "+
			"pool (virsh pool-refresh %s). If the disk was deleted, or the filesystem is lost or was resized: terraform "+
			"state rm <its address>, or destroy it.", m.Host.ValueString(), why, m.Pool.ValueString()))
	if _, known := m.made(ctx, diags); known {
		if err := r.warnOfUsers(ctx, h, m, false, diags); err != nil {
			diags.AddWarning(fmt.Sprintf("Whether a machine runs with disk %s is not known", m.ID.ValueString()), err.Error()+".")
		}
	}
	return true
}

// leavesUnmounted reports whether a disk that is destroyed may be on a filesystem that is not mounted. The host's records of it stay, so
// that it can be imported.
func leavesUnmounted(ctx context.Context, h *host.Host, m model, private tfvalue.PrivateReader, diags *diag.Diagnostics) bool {
	why := otherFilesystem(ctx, h, m, private, diags)
	if why != "" {
		diags.AddWarning(fmt.Sprintf("Disk %s is removed from the state only", m.ID.ValueString()), fmt.Sprintf(
			"Its file is not there, and may be on a filesystem that is not mounted now: on host %s, %s. A file that comes back can be "+
				"imported, or deleted: virsh vol-delete %s --pool %s.", m.Host.ValueString(), why, m.Name.ValueString(),
			m.Pool.ValueString()))
	}
	return why != ""
}

// refuseMissing is content.ErrBacking for a volume that is gone while it has overlays: removed from the state, it would be created again.
func refuseMissing(ctx context.Context, h *host.Host, top volume.Image) error {
	names, err := content.OverlaysOf(ctx, h, top.Name)
	if err != nil {
		return fmt.Errorf("its file is not there, and whether volumes are overlays of it is not known: %w. If it is to go all the same, "+
			"remove it from the state (terraform state rm)", err)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("its file is not there, and %w: %s. Restore the file, for example by mounting the filesystem of the pool, or "+
		"remove those first",
		content.ErrBacking, strings.Join(names, ", "))
}
