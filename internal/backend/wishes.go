package backend

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// wishes are what of the configuration is to use which image, as far as this process has planned it.
type wishes struct {
	mu  sync.Mutex
	all []wish
}

// wish is an image and what is to use it: a machine, or a disk that is an overlay of it.
type wish struct {
	by    string
	image volume.Image
}

// Refreshes notes that this process reads what a state has. Something exists then, and nothing is applied.
func (b *Backend) Refreshes() { b.refreshes.Store(true) }

// HasRefreshed tells whether this process has read something of the state.
func (b *Backend) HasRefreshed() bool { return b != nil && b.refreshes.Load() }

// Wish notes what is to use an image, such as "machine host-a/web", and refuses it where something that was planned before
// does not go together with it. Terraform makes the same plan before it destroys, and does not say so: as long as there may
// be something to destroy, the plan only warns, and the apply refuses.
func (b *Backend) Wish(by string, image volume.Image, at path.Path, diags *diag.Diagnostics) (ok bool) {
	b.wishes.mu.Lock()
	defer b.wishes.mu.Unlock()
	is := wish{by, image}
	for _, w := range b.wishes.all {
		if w.by == by || w.image.AccessMode.Bears(image.AccessMode) || !volume.Overlap(w.image, image) {
			continue
		}
		summary, detail := is.conflict(w)
		if b.HasRefreshed() {
			diags.AddAttributeWarning(at, summary, detail+" The apply is going to refuse it.")
		} else {
			diags.AddAttributeError(at, summary, detail)
		}
		return false
	}
	b.wishes.all = append(b.wishes.all, is)
	return true
}

// conflict says why two uses of one image do not go together.
func (w wish) conflict(other wish) (summary, detail string) {
	reader, writer := w, other
	if reader.image.AccessMode != volume.ReadShared {
		reader, writer = other, w
	}
	if w.image.IsDisk() && reader.image.AccessMode == volume.ReadShared {
		return "A master is read-only", fmt.Sprintf("The %s is over %s, which has to stay as it is, and the %s would write to it. Give that "+
			"machine an overlay or a clone of its own (virtclaim_disk with a copy_mode), or remove the overlays.",
			reader.by, w.image.Name, writer.by)
	}
	return "Two machines on the same storage", fmt.Sprintf("The %s uses %s, which the %s of this configuration uses, too. It is %s here, so "+
		"only one of them can have it. Take it away from one, bind it read-shared, or give each machine a copy of its own "+
		"(virtclaim_disk with a copy_mode).", w.by, w.image.Name, other.by, w.image.AccessMode)
}
