package disk

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

type model struct {
	ID            types.String     `tfsdk:"id"`
	Host          types.String     `tfsdk:"host"`
	Hosts         types.Set        `tfsdk:"hosts"`
	Name          types.String     `tfsdk:"name"`
	NamePrefix    types.String     `tfsdk:"name_prefix"`
	UsageType     types.String     `tfsdk:"usage_type"`
	CopyMode      types.String     `tfsdk:"copy_mode"`
	Size          tfvalue.Quantity `tfsdk:"size"`
	Format        types.String     `tfsdk:"format"`
	ClusterSize   tfvalue.Quantity `tfsdk:"cluster_size"`
	Preallocation types.String     `tfsdk:"preallocation"`
	Source        types.Object     `tfsdk:"source"`
	Digest        types.String     `tfsdk:"digest"`
	Pool          types.String     `tfsdk:"pool"`
	// ImageConfiguration is null but for a disk with a root file system.
	ImageConfiguration types.Object   `tfsdk:"image_configuration"`
	Volume             types.Object   `tfsdk:"volume"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
	// Imported is nil once a configuration has been applied to the disk, unless it was the one that an import generates.
	Imported *imported `tfsdk:"-"`
}

func (m model) mode() volume.CopyMode { return volume.CopyMode(m.CopyMode.ValueString()) }

// isOver reports whether the disk is an overlay of its master.
func (m model) isOver() bool {
	return m.mode() == volume.CopyOnWrite || m.mode() == volume.CopyOnRead
}

// isOverShared reports whether the disk is an overlay of images that disks share.
func (m model) isOverShared() bool { return m.kind() == fromContainer || m.kind() == fromRoot }

// sourceVolume is the value of the master: null for a blank disk, unknown if not known yet.
func (m model) sourceVolume() types.Object {
	if m.isUndecided() {
		return tfvalue.UnknownVolume()
	}
	if v, ok := m.Source.Attributes()["volume"].(types.Object); ok && !m.Source.IsNull() {
		return v
	}
	return types.ObjectNull(tfvalue.VolumeTypes)
}

// master is the master as far as it is known.
func (m model) master(_ context.Context, diags *diag.Diagnostics) (v volume.Volume, known bool) {
	v, known, d := tfvalue.VolumeFrom(m.sourceVolume())
	diags.Append(d...)
	return v, known && len(v.Images) > 0
}

// made is the disk's own volume in state.
func (m model) made(_ context.Context, diags *diag.Diagnostics) (v volume.Volume, known bool) {
	v, known, d := tfvalue.VolumeFrom(m.Volume)
	diags.Append(d...)
	return v, known && len(v.Images) > 0
}

// top is the disk's own image. Seeds and environments may be used by any number of machines, because none of them writes to them.
func (m model) top(v host.StorageVolume, generation string) volume.Image {
	mode := volume.WriteExclusive
	if m.isComposed() {
		mode = volume.ReadShared
	}
	return volume.Image{
		Type: "file", Format: v.Format, Name: v.Path, Generation: generation,
		AccessMode: mode, Hosts: m.hostKeys(),
	}
}

// asConfigured sets the attributes of a disk's own volume that only the configuration has. While the kind of the source is undecided, the
// access mode is kept: another kind would make it another disk.
func (m model) asConfigured(v volume.Volume) volume.Volume {
	v.CopyOnRead, v.Images[0].Hosts = m.mode() == volume.CopyOnRead, m.hostKeys()
	if !m.isUndecided() {
		v.Images[0].AccessMode = m.top(host.StorageVolume{}, "").AccessMode
	}
	return v
}

// shared are shared images of this host. Their names identify their content, so that they need no other identity.
func (m model) shared(images ...volume.Image) []volume.Image {
	for n := range images {
		images[n].Type, images[n].AccessMode, images[n].Hosts = "file", volume.ReadShared, []string{m.Host.ValueString()}
	}
	return images
}

// spec is the specification of a wholly known plan.
func (m model) spec(ctx context.Context, pool string, diags *diag.Diagnostics) content.Spec {
	s := content.Spec{
		Pool: pool, Prefix: m.NamePrefix.ValueString(), Mode: m.mode(), Format: m.Format.ValueString(), // empty while that is unknown
		Preallocation: m.Preallocation.ValueString(), Capacity: m.size(),
	}
	if s.Prefix == "" {
		s.Name = m.Name.ValueString()
	}
	s.Master, _ = m.master(ctx, diags)
	if !m.ClusterSize.IsNull() {
		s.ClusterSize, _ = m.ClusterSize.Bytes() // validated
	}
	return s
}

// size is the configured size in bytes, rounded up to whole 4 KiB, because storage with such sectors has no other raw disks; 0 when there
// is none or it is unknown.
func (m model) size() int64 {
	if m.Size.IsNull() || m.Size.IsUnknown() {
		return 0
	}
	const largeSector = 4096
	bytes, _ := m.Size.Bytes() // validated
	return (bytes + largeSector - 1) / largeSector * largeSector
}

// grownSize is size, or 0 if the size is that of the state, which may be one that no configuration gives: an imported disk's.
func (m model) grownSize(state model) int64 {
	if m.Size.Equal(state.Size) {
		return 0
	}
	return m.size()
}

// read fills the model with the host's volume; for a disk that is being imported, id is its identity and below its chain. The attributes of
// its creation are kept, including the format: libvirt may take what a guest wrote to a raw disk for another format, and the guest could
// choose other files to open that way.
func (m *model) read(ctx context.Context, v host.StorageVolume, id string, below []volume.Image, diags *diag.Diagnostics) {
	m.ID = types.StringValue(m.Host.ValueString() + "/" + v.Pool + "/" + v.Name)
	m.Pool, m.Name = types.StringValue(v.Pool), types.StringValue(v.Name)
	is, known := m.made(ctx, diags)
	if !known {
		m.Format = tfvalue.OrNull(v.Format)
		is = volume.Volume{Images: append([]volume.Image{m.top(v, id)}, below...)}
	}
	capacity := capacityAs(is.Images[0].Format, v)
	if !m.Size.IsNull() && m.size() != capacity {
		m.Size = tfvalue.QuantityOfBytes(capacity)
	}
	is.Capacity, is.Images[0].Name = &capacity, v.Path
	m.Volume = tfvalue.VolumeObject(is, tfvalue.Unknowns{})
}

// capacityAs is the size in bytes that a guest sees of a volume opened in that format: of a raw one the whole file, whatever header the
// guest may have written. For volumes other than files libvirt may not report the physical size.
func capacityAs(format string, v host.StorageVolume) int64 {
	if format == "raw" {
		return cmp.Or(v.Physical, v.Capacity)
	}
	return v.Capacity
}
