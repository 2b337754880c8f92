package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
)

// located is a host whose running domains show the paths of their disks, also of disks that name a storage pool and a volume.
type located struct{ domains }

func (h located) LiveXML(ctx context.Context, uuid string) (string, error) {
	text, err := h.domains.LiveXML(ctx, uuid)
	if err != nil {
		return "", err
	}
	return guard.WithPaths(ctx, h.domains, text)
}
