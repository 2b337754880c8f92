package backend

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// wishes are the uses of images in the configuration, as far as this process has planned them.
type wishes struct {
	mu  sync.Mutex
	all []Wish
}

// Wish is the planned use of an image: by a machine, or by a disk that is an overlay of it.
type Wish struct {
	// By is the user, such as "machine host-a/web".
	By    string
	Image volume.Image
	// Depth is the index of the image in the chain.
	Depth int
	// Reads is whether the top image is only read, for example a CD-ROM.
	Reads bool
	// Disk is whether the user is a disk, attached to a machine or not.
	Disk bool
}

// goesWith reports whether two uses of one image are compatible. All images of a chain over a write-exclusive binding have that mode,
// because one machine may use an overlay of it; but no machine may write to the bound image while a disk is an overlay of it.
func (w Wish) goesWith(other Wish) bool {
	machine := w
	if w.Disk {
		machine = other
	}
	switch {
	case machine.Disk:
		return true // neither of them writes
	case w.Disk == other.Disk || w.Image.Binding == "":
		return w.Image.AccessMode.CompatibleWith(other.Image.AccessMode)
	}
	return machine.Depth > 0 || machine.Reads || machine.Image.AccessMode == volume.ReadShared
}

// Refreshes records that this process reads resources in a state: they exist, and this is not an apply.
func (b *Backend) Refreshes() { b.refreshes.Store(true) }

// HasRefreshed reports whether this process has read a resource in the state.
func (b *Backend) HasRefreshed() bool { return b != nil && b.refreshes.Load() }

// Wish records the use of an image, and refuses it if it conflicts with another use in this plan. Terraform makes the same plan before a
// destroy, without telling the provider: as long as there may be resources to destroy, the plan only warns, and the apply refuses.
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

// conflict explains why two uses of one image are not compatible.
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

// refused says whether the apply will refuse a conflict that the plan only warns of. Headers do not reference network storage, so that its
// host can't detect an overlay.
func (w Wish) refused(other Wish) string {
	if w.Image.Type == "network" && w.Disk != other.Disk {
		return " The apply can't refuse it, because nothing on the host shows over what storage of the network a disk is."
	}
	return " The apply is going to refuse it."
}
