package disk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// filesystemKey is where the private state has the size of the filesystem that the disk's storage pool had, in bytes. A pool whose filesystem is not
// mounted, as after a boot of the host, shows the empty folder below the mount point: all its disks seem to be deleted.
const filesystemKey = "filesystem"

// privateState is what Terraform keeps beside the state.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// noteFilesystem saves that size where there is none yet.
func noteFilesystem(ctx context.Context, h *host.Host, m model, private privateState) diag.Diagnostics {
	was, diags := private.GetKey(ctx, filesystemKey)
	if was != nil || diags.HasError() {
		return diags
	}
	bytes, err := h.PoolCapacity(ctx, m.Pool.ValueString())
	if err != nil || bytes == 0 {
		tflog.Debug(ctx, "The filesystem of a disk is not known", map[string]any{"disk": m.ID.ValueString()})
		return diags
	}
	text, _ := json.Marshal(bytes) // a number always can be
	return private.SetKey(ctx, filesystemKey, text)
}

// warnOfFilesystem reports whether the storage pool of a disk that is gone is empty, and on a filesystem of another size: the disk stays in the state
// then. A blank disk in its place would be hidden as soon as the filesystem is mounted again, with what its guest has written.
func (r *disk) warnOfFilesystem(ctx context.Context, h *host.Host, m model, private privateState, diags *diag.Diagnostics) bool {
	text, found := private.GetKey(ctx, filesystemKey)
	diags.Append(found...)
	var was int64
	if text == nil || json.Unmarshal(text, &was) != nil {
		return false
	}
	pool, err := h.Pool(ctx, m.Pool.ValueString())
	if err != nil || pool.Capacity == 0 || pool.Capacity == was {
		return false
	}
	if volumes, err := h.Volumes(ctx, m.Pool.ValueString()); err != nil || volumes > 0 {
		return false
	}
	diags.AddWarning(fmt.Sprintf("The filesystem of disk %s is not mounted", m.ID.ValueString()), fmt.Sprintf(
		"On host %[1]s, storage pool %[2]s is empty, and its folder %[3]s is on a filesystem of %[4]d bytes. It was on one of %[5]d bytes when the disk was "+
			"created. The disk stays in the state, and is not created again. Mount the filesystem, and refresh the pool: virsh pool-refresh %[2]s. If the "+
			"disk is lost for good, create it again with terraform apply -replace=<address of the disk>.",
		m.Host.ValueString(), m.Pool.ValueString(), pool.Path, pool.Capacity, was))
	return true
}
