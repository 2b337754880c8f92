package virtualmachine

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// isDirect reports whether a cache mode bypasses the host's cache.
func isDirect(cache string) bool { return cache == domainxml.DirectCache || cache == directSync }

// checkIO refuses native I/O with a cache mode that uses the host's cache, as libvirt does.
func checkIO(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	cache := d.Cache.ValueString()
	if d.Cache.IsNull() {
		cache = domainxml.Disk{Volume: v, Device: d.Device.ValueString()}.Defaults().Cache
	}
	if d.IO.ValueString() == nativeIO && !d.Cache.IsUnknown() && !isDirect(cache) {
		diags.AddAttributeError(diskPath(key).AtName("io"), "Native I/O needs a direct cache",
			fmt.Sprintf("Disk %s is to have io = %q, and the host would cache it. Add cache = %q, or %q.", key, nativeIO,
				domainxml.DirectCache, directSync))
	}
}

// checkDetectZeroes refuses to discard zeroes where nothing is discarded: libvirt would only detect them.
func checkDetectZeroes(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	discard := d.Discard.ValueString()
	if d.Discard.IsNull() {
		discard = domainxml.Disk{Volume: v, Device: d.Device.ValueString()}.Defaults().Discard
	}
	if d.DetectZeroes.ValueString() == unmap && !d.Discard.IsUnknown() && discard != unmap {
		diags.AddAttributeError(diskPath(key).AtName("detect_zeroes"), "Zeroes that are not discarded",
			fmt.Sprintf("Disk %s is to discard the zeroes that its guest writes, but not to discard. Add discard = %q, or use "+
				"detect_zeroes = \"on\".", key, unmap))
	}
}

// checkCache refuses a host cache for a volume that machines on other hosts write to.
func checkCache(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	if cache := d.Cache.ValueString(); cache != "" && !isDirect(cache) && v.Images[0].AccessMode == volume.WriteShared {
		diags.AddAttributeError(diskPath(key).AtName("cache"), "A cache of what others write",
			fmt.Sprintf("The volume of disk %s is write-shared, and with cache = %q this machine and the others would not see what each "+
				"other writes. Leave cache out, or use %q or %q.", key, cache, domainxml.DirectCache, directSync))
	}
}

// checkLUN refuses volumes that accept no SCSI commands, or to which QEMU can't pass them.
func checkLUN(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	top := v.Images[0]
	isUnit := top.Type == "block" || top.Type == "network" && top.Protocol == "iscsi"
	if d.is(domainxml.LUN) && top.Type != "" && (!isUnit || top.Format != "raw" || len(v.Images) > 1) {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "Not a logical unit",
			fmt.Sprintf("Disk %s is a lun, which has to be a raw block device or raw iSCSI storage: %s is not. Use the device disk.", key,
				top.Name))
	}
}

// checkCopyOnRead refuses copy-on-read for a read-only disk, as libvirt does.
func checkCopyOnRead(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	if v.CopyOnRead && d.ReadOnly.ValueBool() && !domainxml.IsDrive(d.Device.ValueString()) {
		diags.AddAttributeError(diskPath(key).AtName("read_only"), "Copy-on-read writes",
			fmt.Sprintf("Disk %s is read-only, and its volume keeps what is read of its master. Use the copy_mode \"copy-on-write\", or "+
				"leave read_only out.", key))
	}
}
