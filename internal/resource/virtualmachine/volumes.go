package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkDisks refuses volumes that can't be used as configured, as far as they are known. Apply checks again.
func checkDisks(_ context.Context, m model, diags *diag.Diagnostics) {
	disks := m.disks()
	known := map[string]volume.Volume{}
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		v, ok, found := tfvalue.VolumeFrom(disks[key].Volume)
		diags.Append(found...)
		if ok || disks[key].Volume.IsNull() || !disks[key].Cache.IsNull() {
			checkIO(key, disks[key], v, diags)
		}
		if ok || !disks[key].Discard.IsNull() {
			checkDetectZeroes(key, disks[key], v, diags)
		}
		if !ok || found.HasError() {
			continue
		}
		if len(v.Images) == 0 && domainxml.IsDrive(disks[key].Device.ValueString()) {
			continue
		}
		if len(v.Images) == 0 {
			diags.AddAttributeError(diskPath(key).AtName("volume"), "A volume without an image",
				fmt.Sprintf("The volume of disk %s names nothing that could be opened. Take it from a virtclaim_volume_binding or a "+
					"virtclaim_disk.", key))
			continue
		}
		checkHost(diskPath(key), "Disk "+key, m.Host.ValueString(), v, diags)
		checkMode(diskPath(key), "Disk "+key, v, diags)
		checkShared(key, v, diags)
		checkReadOnly(key, disks[key], v, diags)
		checkMedium(key, disks[key], v, diags)
		checkLUN(key, disks[key], v, diags)
		checkCache(key, disks[key], v, diags)
		checkCopyOnRead(key, disks[key], v, diags)
		checkEphemeral(key, disks[key], v, diags)
		checkTwice(key, v, known, diags)
		known[key] = v
	}
}

func checkHost(at path.Path, what, host string, v volume.Volume, diags *diag.Diagnostics) {
	for _, i := range v.Images {
		if !slices.Contains(i.Hosts, host) && i.IsDisk() {
			diags.AddAttributeError(at.AtName("volume"), "A disk of another host", fmt.Sprintf("%s of this machine on host %s is a "+
				"virtclaim_disk of host %s. Give both the same host: another one in one plan moves both. To leave the disk there, take it "+
				"from the machine.", what, host, strings.Join(i.Hosts, ", ")))
			return
		}
		if !slices.Contains(i.Hosts, host) {
			diags.AddAttributeError(at.AtName("volume"), "Host not in the binding",
				fmt.Sprintf("%s uses %s, which is bound for the hosts %s, not for %s. Add %s to the hosts of the binding.",
					what, i.Name, strings.Join(i.Hosts, ", "), host, host))
		}
	}
}

// checkShared refuses write-shared images where the writes of several machines would corrupt the content: below an overlay, and in an image
// with a header, of which each machine would cache a copy.
func checkShared(key string, v volume.Volume, diags *diag.Diagnostics) {
	for depth, i := range v.Images {
		if i.AccessMode == volume.WriteShared && (depth > 0 || i.Format != "raw") {
			diags.AddAttributeError(diskPath(key).AtName("volume"), "Not to be shared for writing",
				fmt.Sprintf("Disk %s uses %s write-shared, which only a raw volume can be that the machine uses directly, not through an "+
					"overlay. Bind it read-shared, or give the machine a clone.", key, i.Name))
		}
	}
}

// checkReadOnly refuses devices that can't be read-only if the volume is.
func checkReadOnly(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	if !d.Bus.IsUnknown() && !d.canBeReadOnly() && v.Images[0].AccessMode == volume.ReadShared {
		at := diskPath(key).AtName("bus")
		if d.is(domainxml.LUN) {
			at = diskPath(key).AtName("device")
		}
		diags.AddAttributeError(at, "A device that can't be read-only",
			fmt.Sprintf("The volume of disk %s is read-shared, so its device must be read-only, which QEMU's %ss on %s can't be. "+
				"Use a disk on virtio, scsi or usb, or the device cdrom.", key, d.Device.ValueString(), d.Bus.ValueString()))
	}
}

// checkMedium refuses a medium that other machines write to: a guest assumes that a medium does not change.
func checkMedium(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	if domainxml.IsDrive(d.Device.ValueString()) && v.Images[0].AccessMode == volume.WriteShared {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "A medium that others write to",
			fmt.Sprintf("Disk %s is a %s, and its volume %s is write-shared, so that it could change under the guest. Bind it read-shared.",
				key, d.Device.ValueString(), v.Images[0].Name))
	}
}

// checkEphemeral refuses volumes whose writes libvirt can't discard. Its <transient/> is for files only, beside which it makes its overlay,
// and which QEMU opens for writing until that is there, so that libvirt has none that is read-only.
func checkEphemeral(key string, d diskModel, v volume.Volume, diags *diag.Diagnostics) {
	if !d.Ephemeral.ValueBool() || domainxml.IsDrive(d.Device.ValueString()) {
		return
	}
	const instead = "Put a virtclaim_disk with copy_mode = \"copy-on-write\" over it and make that ephemeral."
	top := v.Images[0]
	at := diskPath(key).AtName("ephemeral")
	switch {
	case top.Type != "file":
		of := map[string]string{"network": "network storage", "block": "a block device"}[top.Type]
		diags.AddAttributeError(at, "Only a local disk can be ephemeral", fmt.Sprintf(
			"Disk %s is %s, and libvirt has no ephemeral disk over %s. %s", key, top.Name, of, instead))
	case top.AccessMode == volume.ReadShared:
		diags.AddAttributeError(at, "A volume that many read can't be ephemeral", fmt.Sprintf(
			"Disk %s is %s, which is read-shared, and QEMU would open it for writing. %s", key, top.Name, instead))
	case d.ReadOnly.ValueBool():
		diags.AddAttributeError(at, "A read-only disk can't be ephemeral", fmt.Sprintf(
			"Disk %s is read_only, so that there is nothing to discard. Leave one of both out.", key))
	}
}

// checkTwice refuses storage that one machine would write through one disk and have through another, also below it.
func checkTwice(key string, v volume.Volume, others map[string]volume.Volume, diags *diag.Diagnostics) {
	for _, other := range slices.Sorted(maps.Keys(others)) {
		if i := writtenElsewhere(v, others[other]); i != nil {
			diags.AddAttributeError(diskPath(key).AtName("volume"), "The same storage twice",
				fmt.Sprintf("Disks %s and %s both have %s, and one of them writes to it, which would destroy the content of the other.",
					other, key, i.Name))
		}
	}
}

// writtenElsewhere is the image that one of two disks writes and the other one has, too; nil when there is none.
func writtenElsewhere(a, b volume.Volume) *volume.Image {
	for n, x := range a.Images {
		for m, y := range b.Images {
			writes := n == 0 && x.AccessMode != volume.ReadShared || m == 0 && y.AccessMode != volume.ReadShared
			// An image without a name is yet to be created, so that no other disk has it.
			if writes && x.Name != "" && y.Name != "" && volume.Overlap(x, y) {
				return &x
			}
		}
	}
	return nil
}

// checkMode refuses an image without an access mode: the guard could not protect it.
func checkMode(at path.Path, what string, v volume.Volume, diags *diag.Diagnostics) {
	for _, i := range v.Images {
		switch i.AccessMode {
		case volume.WriteExclusive, volume.WriteShared, volume.ReadShared:
		default:
			diags.AddAttributeError(at.AtName("volume"), "A volume without an access mode",
				fmt.Sprintf("%s uses %s, whose access_mode is %q. Take the volume from a virtclaim_volume_binding or a "+
					"virtclaim_disk, or write write-exclusive, write-shared or read-shared.", what, i.Name, i.AccessMode))
		}
	}
}
