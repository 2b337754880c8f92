package virtualmachine

import (
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// located is a host whose running domains show the paths of their disks, also of disks that name a storage pool and a volume. It looks at each
// file once.
type located struct {
	domains
	files *content.FileCache
}

func locate(h domains) located { return located{h, &content.FileCache{}} }

func (h located) LiveXML(ctx context.Context, uuid string) (string, error) {
	text, err := h.domains.LiveXML(ctx, uuid)
	if err != nil {
		return "", err
	}
	return guard.WithPaths(ctx, h.domains, text)
}

func (h located) File(ctx context.Context, path string, head int) (host.File, error) {
	return h.files.File(ctx, h.domains, "", path, head)
}
