package domainxml

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// External is a disk whose chain somebody else has changed: with an overlay on top of virtclaim's volume (an external snapshot), by
// moving it elsewhere (a block copy or pull), or with a block job that may do so when it ends.
type External struct {
	// Target is libvirt's name of the disk, such as vda.
	Target string
	// Noted are the names of the images of virtclaim's volume, top first.
	Noted []string
	// Chain is what the disk opens, top first, as far as the definition tells.
	Chain []volume.Image
	// Depth is the place of virtclaim's top image in Chain: what is before it are overlays. It is -1 where the chain has it nowhere.
	Depth int
	// Base is that image as virsh blockcommit names it; empty where only the running domain can tell.
	Base string
	// Job is the kind of the block job, such as copy or active-commit; empty without.
	Job string
	// Snapshot is the name of the snapshot that made the top image. The host is asked; empty where it knows none.
	Snapshot string
	// Cut tells that virtclaim's top image is there alone, or over fewer images than is noted: it was pulled from the others.
	Cut bool
	// Live tells that the running domain has this chain, and not only the stored definition.
	Live bool
}

// TakeCut says what to do about an overlay that somebody else has pulled or rebased.
const TakeCut = "Adopt the image; a running machine keeps running: remove the disk from the state (terraform state rm <address of the disk>), remove " +
	"source and copy_mode from its configuration (or, if another disk is its backing file now, set that as its source; a disk without a source " +
	"needs a size), and import it: terraform import <address of the disk> <host>/<pool>/<volume>"

// IsAdoptedBy tells whether a volume is the chain as it is, so that defining it takes nothing away.
func (e External) IsAdoptedBy(v volume.Volume) bool {
	n := min(len(e.Chain), len(v.Images))
	if e.Cut && len(v.Images) != len(e.Chain) {
		return false
	}
	return e.Job == "" && n > 0 && slices.EqualFunc(e.Chain[:n], v.Images[:n], func(a, b volume.Image) bool { return a.Name == b.Name })
}

// Externals are the disks of a machine, by key, whose chain somebody else has changed. The stored definition is empty for a transient
// domain, the live one for a domain that is off. A domain that is not virtclaim's has none.
func Externals(stored, live string) (map[string]External, error) {
	var m Machine
	if stored != "" {
		d, mark, err := unmarshalMarked(stored)
		if err != nil || mark.Phase == "" {
			return nil, err
		}
		m.Mark = mark.Mark
		if err := parseDisks(d, mark, &m); err != nil || live == "" {
			return m.External, err
		}
	}
	if live == "" {
		return nil, nil
	}
	d, mark, err := unmarshalMarked(live)
	if err == nil {
		m.compareChains(d, mark)
	}
	return m.External, err
}

func unmarshalMarked(text string) (*libvirtxml.Domain, machineMark, error) {
	d, err := Unmarshal(text)
	if err != nil {
		return nil, machineMark{}, err
	}
	mark, err := parseMark(d)
	return d, mark, err
}

// Replaced are the disks whose chain somebody else has changed and that defining want would not leave as they are, sorted.
func (m Machine) Replaced(want Machine) (keys []string) {
	for key, e := range m.External {
		if !e.IsAdoptedBy(want.Disks[key].Volume) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// AddOverlaid adds the disks of a domain that virtclaim has not changed yet, running or stored, in which want's volume is below other images.
func (m *Machine) AddOverlaid(text string, want Machine) error {
	if m.Mark.Phase != "" {
		return nil
	}
	d, err := Unmarshal(text)
	if err != nil {
		return err
	}
	for _, disk := range d.Devices.Disks {
		images := want.Disks[diskKey(disk)].Volume.Images
		if !isFixed(disk) || len(images) == 0 {
			continue
		}
		if e, is := external(disk, parseVolume(disk).Images, nil, namesOf(images)); is {
			e.Live = d.ID != nil // only a running domain has one
			m.addExternal(diskKey(disk), e)
		}
	}
	return nil
}

// compareChains compares the disks of the running domain with what its own metadata and those of the stored machine note. What was adopted
// since its start only the latter do.
func (m *Machine) compareChains(d *libvirtxml.Domain, mark machineMark) {
	for _, disk := range d.Devices.Disks {
		if !isFixed(disk) {
			continue
		}
		key := diskKey(disk)
		stored := m.External[key].Noted
		if len(stored) == 0 && m.Mark.Phase != "" {
			stored = namesOf(m.Disks[key].Volume.Images)
		}
		if e, is := external(disk, parseVolume(disk).Images, mark.disk(key).names(), stored); is {
			e.Live = true
			m.addExternal(key, e)
		}
	}
}

// isOfExternal tells of a word of what is pending whether it is of a disk whose chain somebody else has changed: no start settles that.
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

// external compares the chain of a disk with the names that its own definition notes, and with those that another one does. Of what only
// the latter notes the disk may have nothing: it may wait for the next start.
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

// isCut tells whether a disk is known to have less below its top image than all have noted who know that.
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

// isWhole tells whether a disk's chain is told to its end. What a definition leaves out, libvirt finds out when it starts the domain.
func isWhole(d libvirtxml.DomainDisk) bool {
	for b := d.BackingStore; b != nil; b = b.BackingStore {
		if b.Format == nil {
			return true
		}
	}
	return false
}

// baseOf names an image below the top one for a block job: by its path, or else by its place in the running chain.
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

// missing are the noted images, as far as they are files, when the chain of a disk has not even the top one.
func (m diskMark) missing(d libvirtxml.DomainDisk, chain []volume.Image) (images []volume.Image) {
	if e, is := external(d, chain, m.names(), nil); !isFixed(d) || !is || e.Depth >= 0 {
		return nil
	}
	for _, i := range m.Images {
		if path.IsAbs(i.Name) {
			images = append(images, volume.Image{Type: "file", Name: i.Name, AccessMode: i.AccessMode, Generation: i.Generation, Binding: i.Binding, Hosts: i.Hosts})
		}
	}
	return images
}

func (m diskMark) names() (names []string) {
	for _, i := range m.Images {
		names = append(names, i.Name)
	}
	return names
}

// SnapshotOf is the name of the snapshot, of those with the given XML, that made the image of that path; empty when none has.
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
