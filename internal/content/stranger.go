package content

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// strangers lists the disks of domains that have a file by another path, or an overlay of it outside of all storage pools, where libvirt does not
// list it: a domain that is off does not show its chain. Disks that virtclaim has attached never have such paths.
func strangers(ctx context.Context, h interface {
	Files
	Domains(ctx context.Context) ([]host.Domain, error)
}, of string,
) (linked, above []string, err error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, nil, err
	}
	file, users, heads := newMasterFile(h, of), map[string]string{}, map[string]int{}
	err = eachImage(domains, func(d host.Domain, _ domainxml.Metadata, i volume.Image) {
		if name := path.Clean(i.Name); i.Type == "file" && !isNoted(i) && name != path.Clean(of) {
			users[name] = d.Name
			if i.Format != "raw" { // the guest of a raw disk can write the header
				heads[name] = image.HeadSize
			}
		}
	})
	for other, domain := range users {
		if err != nil {
			break
		}
		var is, over bool
		is, over, err = file.relate(ctx, other, heads[other])
		switch disk := fmt.Sprintf("%s of domain %s", other, domain); {
		case err != nil:
			err = fmt.Errorf("whether the disk %s leads to %s is not known: %w", disk, of, err)
		case is:
			linked = append(linked, disk)
		case over:
			above = append(above, disk)
		}
	}
	slices.Sort(linked)
	slices.Sort(above)
	return linked, above, err
}
