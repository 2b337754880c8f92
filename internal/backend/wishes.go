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
	all []Wish
}

// Wish is an image and what is to use it: a machine, or a disk that is an overlay of it.
type Wish struct {
	// By is what is to use it, such as "machine host-a/web".
	By    string
	Image volume.Image
	// Depth is the image's place in the chain.
	Depth int
	// Reads tells that what is at the top is only read, such as a CD-ROM.
	Reads bool
	// Disk tells that it is a disk, whether a machine has that or not.
	Disk bool
}

// goesWith reports whether two uses of one image go together. Of what is bound write-exclusive one machine may have an overlay, so the mode is that of
// the binding in the whole chain; but none may write to it while a disk is an overlay of it.
func (w Wish) goesWith(other Wish) bool {
	machine := w
	if w.Disk {
		machine = other
	}
	switch {
	case machine.Disk:
		return true // neither writes to it
	case w.Disk == other.Disk || w.Image.Binding == "":
		return w.Image.AccessMode.CompatibleWith(other.Image.AccessMode)
	}
	return machine.Depth > 0 || machine.Reads || machine.Image.AccessMode == volume.ReadShared
}

// Refreshes notes that this process reads what a state has. Something exists then, and nothing is applied.
func (b *Backend) Refreshes() { b.refreshes.Store(true) }

// HasRefreshed tells whether this process has read something of the state.
func (b *Backend) HasRefreshed() bool { return b != nil && b.refreshes.Load() }

// Wish notes what is to use an image, and refuses it where something that was planned before
// does not go together with it. Terraform makes the same plan before it destroys, and does not say so: as long as there may
// be something to destroy, the plan only warns, and the apply refuses.
func (b *Backend) Wish(is Wish, at path.Path, diags *diag.Diagnostics) (ok bool) {
	b.wishes.mu.Lock()
	defer b.wishes.mu.Unlock()
	for _, w := range b.wishes.all {
		if w.By == is.By || w.goesWith(is) || !volume.Overlap(w.Image, is.Image) {
			continue
		}
		summary, detail := is.conflict(w)
		if b.HasRefreshed() {
			diags.AddAttributeWarning(at, summary, detail+is.refused(w))
		} else {
			diags.AddAttributeError(at, summary, detail)
		}
		return false
	}
	b.wishes.all = append(b.wishes.all, is)
	return true
}

// conflict says why two uses of one image do not go together.
func (w Wish) conflict(other Wish) (summary, detail string) {
	reader, writer := w, other
	if other.Disk || !w.Disk && reader.Image.AccessMode != volume.ReadShared {
		reader, writer = other, w
	}
	if w.Image.IsDisk() && reader.Image.AccessMode == volume.ReadShared || reader.Disk {
		return "A master is read-only", fmt.Sprintf("The %s is over %s, which has to stay as it is, and the %s would write to it. Give that "+
			"machine an overlay or a clone of its own (virtclaim_disk with a copy_mode), or remove the overlays.",
			reader.By, w.Image.Name, writer.By)
	}
	return "Two machines on the same storage", fmt.Sprintf("The %s uses %s, which the %s of this configuration uses, too. It is %s here, so "+
		"only one of them can have it. Take it away from one, bind it read-shared, or give each machine a copy of its own "+
		"(virtclaim_disk with a copy_mode).", w.By, w.Image.Name, other.By, w.Image.AccessMode)
}

// refused says what becomes of a conflict that a plan only warns of. No header names network storage, so that its host can't tell.
func (w Wish) refused(other Wish) string {
	if w.Image.Type == "network" && w.Disk != other.Disk {
		return " The apply can't refuse it, because nothing on the host shows over what storage of the network a disk is."
	}
	return " The apply is going to refuse it."
}
