package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkLogs refuses a log file that is storage: libvirt appends to any existing file. A log that the machine already has is accepted,
// because a storage pool over its folder may list it as a volume by now.
func (m Manager) checkLogs(ctx context.Context, was, want domainxml.Machine) error {
	has := slices.Collect(maps.Values(logs(was)))
	asked := logs(want)
	for _, attribute := range slices.Sorted(maps.Keys(asked)) {
		if slices.Contains(has, asked[attribute]) {
			continue
		}
		is, err := m.storageAt(ctx, path.Clean(asked[attribute]), want)
		if err != nil {
			return fmt.Errorf("whether %s %s is free to be written to is not known: %w", attribute, asked[attribute], err)
		}
		if is != "" {
			return fmt.Errorf("%s is %s, which is %s: all that the guest says would be written into it. Name another file, in no storage "+
				"pool",
				attribute, asked[attribute], is)
		}
	}
	return nil
}

// logs are the files that a machine writes to, by attribute.
func logs(m domainxml.Machine) map[string]string {
	all := map[string]string{}
	if m.Serial != nil {
		all["serial.log_file"] = m.Serial.LogFile
	}
	if m.Console != nil {
		all["console.log_file"] = m.Console.LogFile
	}
	maps.DeleteFunc(all, func(_, file string) bool { return file == "" || file == "/dev/null" })
	return all
}

// storageAt describes the storage that a file of the machine's host is; empty if it is none.
func (m Manager) storageAt(ctx context.Context, file string, want domainxml.Machine) (string, error) {
	image := volume.Image{Type: "file", Name: file, Hosts: []string{m.key}}
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		if slices.ContainsFunc(want.Disks[key].Volume.Uses(), func(i volume.Image) bool { return volume.Overlap(image, i) }) {
			return "the machine's own disk " + key, nil
		}
	}
	v, err := m.host.VolumeAt(ctx, file)
	if err == nil {
		return fmt.Sprintf("the volume %s of the storage pool %s (an old log there is to be moved elsewhere, and then: virsh "+
			"pool-refresh %[2]s)",
			v.Name, v.Pool), nil
	}
	if !errors.Is(err, host.ErrNotFound) {
		return "", err
	}
	uses, err := guard.Users(ctx, m.key, m.host, image)
	if err != nil || len(uses) == 0 {
		return "", err
	}
	return fmt.Sprintf("disk %s of the domain %s", uses[0].Device.Key, uses[0].Domain), nil
}
