package domainxml

import (
	"errors"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// ErrNoPath is the error with which a lookup tells WithPaths that a volume is unknown.
var ErrNoPath = errors.New("the path of the volume is not known")

// WithPaths returns a domain's XML in which each disk that names a storage pool and a volume has its path instead. The function path
// returns the kind (file or block) and the path. A volume with ErrNoPath is kept as it is. The other code of virtclaim identifies
// local images by path.
func WithPaths(text string, path func(pool, name string) (kind, at string, err error)) (string, error) {
	if !strings.Contains(text, "'volume'") && !strings.Contains(text, `"volume"`) {
		return text, nil
	}
	d, err := Unmarshal(text)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(sourcesOf(d), namesPool) {
		return text, nil
	}
	return keepUnknown(d, text, func() (string, error) {
		if err := locate(d, path); err != nil {
			return "", err
		}
		return d.Marshal()
	})
}

func namesPool(s *libvirtxml.DomainDiskSource) bool { return s != nil && s.Volume != nil }

// locate replaces the volumes of pools by their paths.
func locate(d *libvirtxml.Domain, path func(pool, name string) (kind, at string, err error)) error {
	for _, source := range sourcesOf(d) {
		if !namesPool(source) {
			continue
		}
		kind, at, err := path(source.Volume.Pool, source.Volume.Volume)
		switch {
		case errors.Is(err, ErrNoPath):
			continue
		case err != nil:
			return err
		case kind == "block":
			source.Block = &libvirtxml.DomainDiskSourceBlock{Dev: at, SecLabel: source.Volume.SecLabel}
		default:
			source.File = &libvirtxml.DomainDiskSourceFile{File: at, SecLabel: source.Volume.SecLabel}
		}
		source.Volume = nil
	}
	return nil
}

// sourcesOf returns all sources that the disks of a domain open; some may be nil.
func sourcesOf(d *libvirtxml.Domain) (all []*libvirtxml.DomainDiskSource) {
	for _, disk := range d.Devices.Disks {
		all = append(all, disk.Source)
		if disk.Mirror != nil {
			all = append(all, disk.Mirror.Source)
		}
		for b := disk.BackingStore; b != nil; b = b.BackingStore {
			all = append(all, b.Source)
		}
	}
	return all
}
