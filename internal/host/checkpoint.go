package host

import (
	"context"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// CheckpointedDisks are the targets of a domain's disks that have checkpoints. QEMU has their bitmaps in memory while the images are open, and
// writes them when it closes the images.
func (h *Host) CheckpointedDisks(ctx context.Context, id string) ([]string, error) {
	return onDomain(ctx, h, "list the checkpoints of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (targets []string, err error) {
		all, _, err := l.DomainListAllCheckpoints(d, 1, 0)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			text, err := l.DomainCheckpointGetXMLDesc(c, uint32(libvirt.DomainCheckpointXMLNoDomain))
			if err != nil {
				return nil, err
			}
			var is libvirtxml.DomainCheckpoint
			if err := is.Unmarshal(text); err != nil {
				return nil, err
			}
			if is.Disks == nil {
				continue
			}
			for _, disk := range is.Disks.Disks {
				if disk.Checkpoint == "bitmap" && !slices.Contains(targets, disk.Name) {
					targets = append(targets, disk.Name)
				}
			}
		}
		return targets, nil
	})
}
