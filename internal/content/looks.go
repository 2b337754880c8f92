package content

import (
	"context"
	"sync"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// Looks are the files of masters as a plan has seen them: each is looked at once, however many overlays it has. The zero value is ready to use.
type Looks struct{ files sync.Map }

// Of is the host of that key, with these looks.
func (l *Looks) Of(key string, h masterRecords) masterRecords { return lookedAt{h, key, l} }

type lookedAt struct {
	masterRecords
	key   string
	looks *Looks
}

func (h lookedAt) File(ctx context.Context, path string, head int) (host.File, error) {
	look := sync.OnceValues(func() (host.File, error) { return h.masterRecords.File(ctx, path, head) })
	seen, _ := h.looks.files.LoadOrStore(h.key+" "+path, look)
	return seen.(func() (host.File, error))()
}
