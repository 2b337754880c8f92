package disk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// importedKey is the key in private state of what an import has seen.
const importedKey = "imported"

// imported is what was seen of a disk by its import.
type imported struct {
	// Modified is the time of the volume's file, in libvirt's format.
	Modified string
	// Found is set in the plan that has found it on a host, for a moved block, which does not say where it is.
	Found bool `json:",omitempty"`
}

// isImported reports whether no configuration has changed the disk since its import, so that the attributes of its creation are those that
// its host shows, or null: the first configuration decides them.
func (m model) isImported() bool { return m.Imported != nil }

// loadImported sets Imported.
func (m *model) loadImported(ctx context.Context, private tfvalue.PrivateReader, diags *diag.Diagnostics) {
	seen, is, err := tfvalue.LoadPrivate[*imported](ctx, private, importedKey, diags)
	if is && err == nil {
		m.Imported = seen
	}
	if m.Imported == nil && m.UsageType.IsNull() { // it was imported by a version that left it so
		m.Imported = &imported{}
	}
}

// describeImported sets the attributes of a disk's creation that its host shows: the usage type by the pool, the size, and the masters that
// the headers name, unless these are shared images, whose names don't tell what they were made from.
func (r *disk) describeImported(ctx context.Context, h *host.Host, m *model, v host.StorageVolume, below []volume.Image,
	diags *diag.Diagnostics,
) {
	own, known := m.made(ctx, diags)
	if !known {
		return
	}
	m.UsageType, m.Size = r.usageTypeOf(ctx, h, v.Pool), tfvalue.QuantityOfBytes(*own.Capacity)
	if len(below) > 0 || v.Backing == "" {
		return
	}
	masters, capacity, err := content.MastersOf(ctx, h, v)
	if err != nil {
		diags.AddWarning("The master of disk "+m.ID.ValueString()+" is not known", fmt.Sprintf(
			"Its configuration needs a source and a copy_mode, which could not be read: %s.", err))
		return
	}
	masters = m.shared(masters...)
	own.Images = append(own.Images[:1], masters...)
	m.Volume, m.CopyMode = tfvalue.VolumeObject(own, tfvalue.Unknowns{}), types.StringValue(string(volume.CopyOnWrite))
	master := tfvalue.VolumeObject(volume.Volume{Capacity: &capacity, Images: masters}, tfvalue.Unknowns{})
	m.Source = tfvalue.With(ctx, m.Source, fromVolume, master)
}

// usageTypeOf is the first usage type of a pool; null if it has none, or that is not known.
func (r *disk) usageTypeOf(ctx context.Context, h *host.Host, pool string) types.String {
	all := r.Provider.UsageTypes(h.Key)
	places, err := all.Places(ctx)
	if err != nil {
		return types.StringNull()
	}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if is, err := all.Existing(ctx, h, name); err == nil && is == pool {
			return types.StringValue(name)
		}
	}
	return types.StringNull()
}

// endImport records that a configuration has been applied to the disk.
func endImport(ctx context.Context, state model, private tfvalue.PrivateState, diags *diag.Diagnostics) {
	if state.isImported() {
		diags.Append(private.SetKey(ctx, importedKey, nil)...)
	}
}

// noteImported records on the host what the first configuration of an imported disk decides.
func noteImported(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) error {
	if !state.isImported() {
		return nil
	}
	noteMasters(ctx, h, plan, state, diags)
	return noteRaw(ctx, h, plan, state, diags)
}

// checkBacking refuses a master for an imported disk that is not the one in its header: its guest would see, and write, a mix of both.
// Headers don't name network storage, so that is not checked here.
func (r *disk) checkBacking(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	master, known := plan.master(ctx, diags)
	if !r.Provider.Ready() || plan.isUndecided() || plan.isOver() && (!known || master.Images[0].Name == "") {
		return
	}
	h := r.host(state, diags)
	if diags.HasError() {
		return
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if err != nil {
		addError(diags, state, "The disk could not be read", err)
		return
	}
	if plan.Format.ValueString() == "raw" {
		v.Format, v.Backing = "raw", "" // its guest may have written a header with a backing file
	}
	if !plan.relocates(state) {
		r.checkPool(ctx, plan, state, diags)
	}
	if !plan.isOver() {
		plan.checkShared(state, v.Backing, diags)
	} else if below := master.Images[0]; !isBacking(v.Backing, below) {
		diags.AddAttributeError(sourcePath, "Another master than it was made over", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its head says, and can't be laid over %s. Give it the source and the copy_mode "+
				"that it was made with.", state.ID.ValueString(), content.Shown(v.Backing), below.Name))
	}
	if !diags.HasError() {
		r.checkChain(ctx, h, plan, state, v, diags)
	}
}

// checkShared refuses an imported disk without a configured master unless its header agrees: it must name a shared image for a container
// image, whose digest is not known any more, and no backing file for other sources.
func (m model) checkShared(state model, backing string, diags *diag.Diagnostics) {
	switch shared := content.IsBase(backing); {
	case !m.isOverShared() && shared:
		diags.AddAttributeError(m.masterPath(), "Made from a container image", fmt.Sprintf(
			"The imported disk %s is an overlay of an image that disks share, which does not tell the container image that it was made "+
				"from. Configure that: source.container_image or source.root_filesystem.", state.ID.ValueString()))
	case m.isOverShared() && !shared:
		diags.AddAttributeError(m.masterPath(), "Not made from a container image", fmt.Sprintf(
			"A disk from a container image is an overlay of the image that such disks share, but the imported disk %s is an overlay of "+
				"%s, as its head says. Give it the source that it was made with, or none if it was blank.", state.ID.ValueString(),
			content.Shown(backing)))
	case !m.isOverShared() && backing != "":
		diags.AddAttributeError(m.masterPath(), "An overlay without its master", fmt.Sprintf(
			"The imported disk %s is an overlay of %s, as its header says. If the guest of a raw disk wrote that, set format = \"raw\". "+
				"If not, configure the source and the copy_mode with which it was created: without them, its master could be written to.",
			state.ID.ValueString(), content.Shown(backing)))
	}
}

// isBacking reports whether the backing file in an overlay's header may be that image.
func isBacking(named string, i volume.Image) bool {
	if i.Type == "network" {
		return !strings.HasPrefix(named, "/")
	}
	return named == i.Name
}
