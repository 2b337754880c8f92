package domainxml

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// External is a disk whose chain was changed outside of virtclaim: by an overlay on top of virtclaim's volume (an external snapshot),
// by moving it (a block copy or pull), or by a block job that is still running and may do so when it ends.
type External struct {
	// Target is libvirt's name of the disk, such as vda.
	Target string
	// Noted are the names of the images of virtclaim's volume, top first.
	Noted []string
	// Binding is the binding of the first of them, as volume.BindingRef formats it.
	Binding string
	// Chain is the chain that the disk opens, top first, as far as the definition contains it.
	Chain []volume.Image
	// Depth is the index of virtclaim's top image in Chain: the images before it are overlays. It is -1 if the chain does not contain
	// it.
	Depth int
	// Base is that image in the syntax of virsh blockcommit; empty if only the running domain can tell.
	Base string
	// Job is the kind of the block job, such as copy or active-commit; empty without a job.
	Job string
	// Snapshot is the name of the snapshot that created the top image. It is queried from the host; empty if the host has none.
	Snapshot string
	// Cut is true if virtclaim's top image is over fewer images than the metadata record: it was pulled or rebased.
	Cut bool
	// Live is true if the running domain has this chain, and not only the stored definition.
	Live bool
}

// TakeCut is the instruction for adopting an overlay that was pulled or rebased outside of Terraform.
const TakeCut = "Adopt it (terraform state rm, then import); its guest keeps running. " + guide.See +
	"backups#adopting-a-pulled-or-rebased-overlay"

// IsAdoptedBy reports whether a volume describes the chain as it is, so that defining the volume removes nothing from it.
func (e External) IsAdoptedBy(v volume.Volume) bool {
	n := min(len(e.Chain), len(v.Images))
	if e.Cut && len(v.Images) != len(e.Chain) {
		return false
	}
	return e.Job == "" && n > 0 && slices.EqualFunc(e.Chain[:n], v.Images[:n], func(a, b volume.Image) bool { return a.Name == b.Name })
}

// Externals returns, by key, the disks of a machine whose chain was changed outside of virtclaim. The stored definition is nil for a
// transient domain, the live one for a domain that is off. A domain that virtclaim does not manage has none.
func Externals(stored, live *Domain) (map[string]External, error) {
	var m Machine
	if stored != nil {
		if stored.metadata.Phase == "" {
			return nil, nil
		}
		m.Metadata = stored.Metadata()
		if err := parseDisks(stored.xml, stored.metadata, &m); err != nil {
			return nil, err
		}
	}
	if live != nil {
		m.compareChains(live)
	}
	return m.External, nil
}

// Replaced returns the keys, sorted, of the disks whose chain was changed outside of virtclaim and that defining want would overwrite.
func (m Machine) Replaced(want Machine) (keys []string) {
	for key, e := range m.External {
		if !e.IsAdoptedBy(want.Disks[key].Volume) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// AddOverlaid adds the disks of a domain that virtclaim has not changed yet, running or stored, in which want's volume is below other
// images.
func (m *Machine) AddOverlaid(d *Domain, want Machine) {
	if m.Metadata.Phase != "" {
		return
	}
	for _, disk := range d.xml.Devices.Disks {
		images := want.Disks[diskKey(disk)].Volume.Images
		if !isFixed(disk) || len(images) == 0 {
			continue
		}
		if e, is := external(disk, parseVolume(disk).Images, nil, namesOf(images)); is {
			e.Live = d.xml.ID != nil // only a running domain has an ID
			m.addExternal(diskKey(disk), e)
		}
	}
}

// compareChains compares the disks of the running domain with the images that its own metadata and those of the stored machine record.
// A chain that was adopted since the start is only in the latter.
func (m *Machine) compareChains(live *Domain) {
	for _, disk := range live.xml.Devices.Disks {
		if !isFixed(disk) {
			continue
		}
		key := diskKey(disk)
		stored, binding := m.External[key].Noted, m.External[key].Binding
		if images := m.Disks[key].Volume.Images; len(stored) == 0 && len(images) > 0 && m.Metadata.Phase != "" {
			stored, binding = namesOf(images), images[0].Binding
		}
		if noted := live.metadata.disk(key).Images; len(noted) > 0 {
			binding = noted[0].Binding
		}
		if e, is := external(disk, parseVolume(disk).Images, live.metadata.disk(key).names(), stored); is {
			e.Live, e.Binding = true, binding
			m.addExternal(key, e)
		}
	}
}

// isOfExternal reports whether a pending change is of a disk whose chain was changed outside of virtclaim: a restart does not resolve
// that.
func (m Machine) isOfExternal(what string) bool {
	for key := range m.External {
		if what == "disk "+key {
			return true
		}
	}
	return false
}

func (m *Machine) addExternal(key string, e External) {
	m.External = maps.Clone(m.External)
	if m.External == nil {
		m.External = map[string]External{}
	}
	m.External[key] = e
}

// external compares the chain of a disk with the image names that its own definition records, and with those of the other definition.
// Images that only the latter records may be missing from the chain: they may wait for the next start.
func external(d libvirtxml.DomainDisk, chain []volume.Image, own, other []string) (e External, is bool) {
	e = External{Chain: chain, Noted: own, Depth: -1}
	if d.Target != nil {
		e.Target = d.Target.Dev
	}
	if d.Mirror != nil {
		e.Job = d.Mirror.Job
	}
	for _, noted := range [][]string{own, other} {
		if len(noted) == 0 {
			continue
		}
		depth := slices.IndexFunc(chain, func(i volume.Image) bool { return i.Name == noted[0] })
		if depth >= 0 && (e.Depth < 0 || depth < e.Depth) {
			e.Depth, e.Noted = depth, noted
		}
	}
	if e.Depth < 0 && len(own) == 0 && e.Job != "" {
		e.Depth = 0
	}
	e.Base = baseOf(d, chain, e.Depth)
	e.Cut = e.Job == "" && isCut(d, chain, own, other)
	return e, e.Cut || e.Depth > 0 || e.Depth < 0 && len(own) > 0 || e.Job != ""
}

// isCut reports whether a disk is known to have fewer images below its top image than every definition that records this top image.
func isCut(d libvirtxml.DomainDisk, chain []volume.Image, noted ...[]string) (is bool) {
	for _, names := range noted {
		if len(names) == 0 || len(chain) == 0 || names[0] != chain[0].Name {
			continue
		}
		if len(names) <= len(chain) {
			return false
		}
		is = true
	}
	return is && isWhole(d)
}

// isWhole reports whether the XML contains a disk's complete chain. libvirt determines the rest of an incomplete one when it starts
// the domain.
func isWhole(d libvirtxml.DomainDisk) bool {
	for b := d.BackingStore; b != nil; b = b.BackingStore {
		if b.Format == nil {
			return true
		}
	}
	return false
}

// baseOf returns the name of an image below the top image for a block job: its path, or else its index in the running chain.
func baseOf(d libvirtxml.DomainDisk, chain []volume.Image, depth int) string {
	if depth <= 0 {
		return ""
	}
	if chain[depth].Type != "network" && chain[depth].Type != "volume" {
		return chain[depth].Name
	}
	below := d.BackingStore
	for range depth - 1 {
		below = below.BackingStore
	}
	if below.Index == 0 || d.Target == nil {
		return ""
	}
	return fmt.Sprintf("%s[%d]", d.Target.Dev, below.Index)
}

func namesOf(images []volume.Image) (names []string) {
	for _, i := range images {
		names = append(names, i.Name)
	}
	return names
}

// missing returns the recorded images that are files, if the chain of a disk contains not even the top one.
func (m diskMetadata) missing(d libvirtxml.DomainDisk, chain []volume.Image) (images []volume.Image) {
	if e, is := external(d, chain, m.names(), nil); !isFixed(d) || !is || e.Depth >= 0 {
		return nil
	}
	for _, i := range m.Images {
		if path.IsAbs(i.Name) {
			images = append(images, volume.Image{
				Type: "file", Name: i.Name, AccessMode: i.AccessMode, Generation: i.Generation,
				Binding: i.Binding, Hosts: i.Hosts,
			})
		}
	}
	return images
}

func (m diskMetadata) names() (names []string) {
	for _, i := range m.Images {
		names = append(names, i.Name)
	}
	return names
}

// SnapshotOf returns the name of the snapshot, of those with the given XML, that created the image with that path; empty when there is
// none.
func SnapshotOf(snapshots []string, image string) string {
	for _, text := range snapshots {
		var s libvirtxml.DomainSnapshot
		if err := s.Unmarshal(text); err != nil || s.Disks == nil {
			continue
		}
		if slices.ContainsFunc(s.Disks.Disks, func(d libvirtxml.DomainSnapshotDisk) bool {
			return d.Source != nil && parseSource(d.Source).Name == image
		}) {
			return s.Name
		}
	}
	return ""
}
