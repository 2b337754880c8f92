package backend

import (
	"sync"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// wishes are which machine of the configuration is to use which image, as far as this process has planned them.
type wishes struct {
	mu  sync.Mutex
	all []wish
}

type wish struct {
	machine string
	image   volume.Image
}

// Wish notes that a machine (host/name) is to use an image, and names the machine planned before that can't have it at the
// same time; empty when there is none.
func (b *Backend) Wish(machine string, image volume.Image) (other string) {
	b.wishes.mu.Lock()
	defer b.wishes.mu.Unlock()
	for _, w := range b.wishes.all {
		if w.machine != machine && !w.image.AccessMode.Bears(image.AccessMode) && volume.Overlap(w.image, image) {
			return w.machine
		}
	}
	b.wishes.all = append(b.wishes.all, wish{machine, image})
	return ""
}
