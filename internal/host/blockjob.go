package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
)

// jobKinds are virsh's names of block jobs, by virDomainBlockJobType.
var jobKinds = map[libvirt.DomainBlockJobType]string{
	libvirt.DomainBlockJobTypePull: "pull", libvirt.DomainBlockJobTypeCopy: "copy", libvirt.DomainBlockJobTypeCommit: "commit",
	libvirt.DomainBlockJobTypeActiveCommit: "active-commit", libvirt.DomainBlockJobTypeBackup: "backup",
}

// BlockJob returns the kind of the block job that runs on a disk of a running domain; empty when there is none. The domain's XML shows
// copies and active commits only.
func (h *Host) BlockJob(ctx context.Context, id, target string) (kind string, err error) {
	return onDomain(ctx, h, "ask for block jobs of disk "+target+" of domain", id,
		func(l *libvirt.Libvirt, d libvirt.Domain) (string, error) {
			found, number, _, _, _, err := l.DomainGetBlockJobInfo(d, target, 0)
			if isCode(err, libvirt.ErrInvalidArg) {
				return "", nil // the disk was unplugged meanwhile
			}
			if err != nil || found == 0 {
				return "", err
			}
			if kind, known := jobKinds[libvirt.DomainBlockJobType(number)]; known {
				return kind, nil
			}
			return "unknown", nil
		})
}

// Snapshots returns the XML of the snapshots for which a domain has metadata.
func (h *Host) Snapshots(ctx context.Context, id string) ([]string, error) {
	return onDomain(ctx, h, "list the snapshots of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (found []string, err error) {
		all, _, err := l.DomainListAllSnapshots(d, 1, 0)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			text, err := l.DomainSnapshotGetXMLDesc(s, 0)
			if isCode(err, libvirt.ErrNoDomainSnapshot) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			found = append(found, text)
		}
		return found, nil
	})
}
