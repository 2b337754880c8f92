package volumebinding

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkDevices refuses a path that leads to another device than the volume's on one of the hosts, as far as that host can tell.
func (r *binding) checkDevices(ctx context.Context, v volume.Volume, device *source.Device, hosts []string,
	diags *diag.Diagnostics,
) error {
	if device == nil {
		return nil
	}
	path := v.Images[0].Name
	for _, key := range hosts {
		found, err := r.open(ctx, key, v, diags)
		if err != nil {
			return err
		}
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			return err
		}
		var names []string
		if len(device.IDs) > 0 {
			if names, err = h.DeviceNames(ctx, path); err != nil {
				return err
			}
		}
		if err := device.Check(found.Size, names); err != nil {
			return source.Errorf("device_path", "device_path leads to %s on host %s, which is not the PersistentVolume's: %w. Correct the "+
				"path; if it is that device, attach it again, or correct the PersistentVolume", path, key, err)
		}
	}
	return nil
}
