package providerdata

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// plannedUses are the uses of images in the configuration, as far as this process has planned them.
type plannedUses struct {
	mu  sync.Mutex
	all []PlannedUse
}

// PlannedUse is the planned use of an image: by a machine, or by a disk that is an overlay of it.
type PlannedUse struct {
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
func (u PlannedUse) goesWith(other PlannedUse) bool {
	machine := u
	if u.Disk {
		machine = other
	}
	switch {
	case machine.Disk:
		return true // neither of them writes
	case u.Disk == other.Disk || u.Image.Binding == "":
		return u.Image.AccessMode.CompatibleWith(other.Image.AccessMode)
	}
	return machine.Depth > 0 || machine.Reads || machine.Image.AccessMode == volume.ReadShared
}

// Refreshes records that this process reads resources in a state: they exist, and this is not an apply.
func (d *Data) Refreshes() { d.refreshes.Store(true) }

// HasRefreshed reports whether this process has read a resource in the state.
func (d *Data) HasRefreshed() bool { return d != nil && d.refreshes.Load() }

// RecordPlannedUse records the use of an image, and refuses it if it conflicts with another use in this plan. Terraform makes the same plan
// before a destroy, without telling the provider: it only warns of what an apply may have led to, which is over storage that exists, and
// the apply refuses. Such storage was read before its users are planned, other resources are read at any time.
func (d *Data) RecordPlannedUse(is PlannedUse, at path.Path, diags *diag.Diagnostics) (ok bool) {
	d.plannedUses.mu.Lock()
	defer d.plannedUses.mu.Unlock()
	for _, w := range d.plannedUses.all {
		if w.By == is.By || w.goesWith(is) || !volume.Overlap(w.Image, is.Image) {
			continue
		}
		summary, detail := is.conflict(w)
		if d.HasRefreshed() && (exists(w.Image) || exists(is.Image)) {
			diags.AddAttributeWarning(at, summary, detail+is.refused(w))
		} else {
			diags.AddAttributeError(at, summary, detail)
		}
		return false
	}
	d.plannedUses.all = append(d.plannedUses.all, is)
	return true
}

// exists reports whether an earlier apply has bound or created an image. A volume that is written literally counts as new.
func exists(i volume.Image) bool { return i.Binding != "" || i.Generation != "" }

// conflict explains why two uses of one image are not compatible.
func (u PlannedUse) conflict(other PlannedUse) (summary, detail string) {
	reader, writer := u, other
	if other.Disk || !u.Disk && reader.Image.AccessMode != volume.ReadShared {
		reader, writer = other, u
	}
	if u.Image.IsDisk() && reader.Image.AccessMode == volume.ReadShared || reader.Disk {
		return "A master is read-only", fmt.Sprintf("The %s is over %s, which has to stay as it is, and the %s would write to it. Give "+
			"that machine an overlay or a clone of its own (virtclaim_disk with a copy_mode), or remove the overlays.",
			reader.By, u.Image.Name, writer.By)
	}
	remedy := "Take it away from one, bind it read-shared, or give each machine a copy of its own (virtclaim_disk with a copy_mode)."
	switch {
	case u.Image.IsFolder() || other.Image.IsFolder():
		remedy = "Take it away from one, or bind it write-shared or read-shared (access_mode of its virtclaim_volume_binding)."
	case u.Image.IsDisk() && u.Image.Binding == "":
		remedy = "Take it away from one, or make another disk for it."
	case u.Depth > 0 && other.Depth > 0:
		remedy = "Both only read it, below disks of their own: bind it read-shared (access_mode of its virtclaim_volume_binding)."
	}
	return "Two machines on the same storage", fmt.Sprintf("The %s uses %s, which the %s of this configuration uses, too. It is %s here, "+
		"so only one of them can have it. %s", u.By, u.Image.Name, other.By, u.Image.AccessMode, remedy)
}

// refused says whether the apply will refuse a conflict that the plan only warns of. Headers do not reference network storage, so that its
// host can't detect an overlay.
func (u PlannedUse) refused(other PlannedUse) string {
	if u.Image.Type == "network" && u.Disk != other.Disk {
		return " The apply can't refuse it, because nothing on the host shows over what storage of the network a disk is."
	}
	return " The apply is going to refuse it."
}
