package content

import (
	"context"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// RemoveTransients removes the overlays of an ephemeral disk that libvirt has left, and returns their paths. While a domain runs, libvirt has one
// over each of them. It stays when libvirtd and QEMU die together, and libvirt does not start the domain again while it is there. With a uuid, only
// that domain's is removed: in a shared folder there may be those of other hosts.
func RemoveTransients(ctx context.Context, h interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	State(ctx context.Context, uuid string) (host.State, error)
	KnownOverlays(ctx context.Context, of string) ([]host.StorageVolume, error)
	DeleteVolume(ctx context.Context, pool, name string) error
}, disk, uuid string,
) (removed []string, err error) {
	above, err := h.KnownOverlays(ctx, disk)
	for _, o := range above {
		domain, is := strings.CutPrefix(o.Path, disk+".TRANSIENT-")
		if !is || absolute(o.Backing, o.Path) != disk {
			continue
		}
		var state host.State
		id, err := h.LookupByName(ctx, domain)
		if err == nil {
			state, err = h.State(ctx, id)
		}
		if ignoreNotFound(err) != nil || state.Active || uuid != "" && id != uuid {
			continue
		}
		if err := h.DeleteVolume(ctx, o.Pool, o.Name); err != nil {
			return removed, err
		}
		removed = append(removed, o.Path)
	}
	return removed, err
}
