package host

import (
	"context"
	"path"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// DeviceNames returns the serial number of a disk and the names of its links in /dev/disk/by-id, which have its WWN. It returns none for
// what is no disk, as a logical volume, and on a host whose libvirt does not ask udev.
func (h *Host) DeviceNames(ctx context.Context, device string) ([]string, error) {
	return call(ctx, h, "look for the names of "+device, func(l *libvirt.Libvirt) ([]string, error) {
		disks, _, err := l.ConnectListAllNodeDevices(1, uint32(libvirt.ConnectListNodeDevicesCapStorage))
		if isCode(err, libvirt.ErrNoSupport) {
			return nil, nil
		}
		for _, disk := range disks {
			text, err := l.NodeDeviceGetXMLDesc(disk.Name, 0)
			if isCode(err, libvirt.ErrNoNodeDevice) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if names, err := namesIn(text, device); err != nil || len(names) > 0 {
				return names, err
			}
		}
		return nil, err
	})
}

// namesIn are the names of a disk in libvirt's description, if it is that device.
func namesIn(text, device string) (names []string, err error) {
	var disk libvirtxml.NodeDevice
	if err := disk.Unmarshal(text); err != nil {
		return nil, err
	}
	is := false
	for _, node := range disk.DevNodes {
		is = is || node.Path == device
		if name, ok := strings.CutPrefix(node.Path, "/dev/disk/by-id/"); ok {
			names = append(names, path.Base(name))
		}
	}
	if s := disk.Capability.Storage; s != nil {
		is = is || s.Block == device
		if s.Serial != "" {
			names = append(names, s.Serial)
		}
	}
	if !is {
		return nil, nil
	}
	return names, nil
}
