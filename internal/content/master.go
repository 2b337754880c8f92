package content

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// master is a file whose overlays are searched for, by the references in their headers. A reference counts by its path, or by the name of
// its file: another path may lead to the same file, by a link or by a storage pool that was moved. No file is opened to tell, because a
// guest may have written the reference. See docs/decisions/0027.
type master struct {
	host interface {
		VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
	}
	path string
	// own is the storage volume of the path; nil before it is asked for, without a path if there is none.
	own *host.StorageVolume
}

// isNamed reports whether a reference in the file at a path may be to the master. The path of a file that is in no storage pool, such as
// that of a claim, leads through no link: there only equal paths count. Nor does the path of another volume count whose length or
// modification time differs.
func (m *master) isNamed(ctx context.Context, named, at string) (bool, error) {
	other, own := absolute(named, at), path.Clean(m.path)
	switch {
	case path.Clean(at) == own: // an image is no overlay of itself
		return false, nil
	case other == own:
		return true, nil
	case !path.IsAbs(other): // json:, or a filter of QEMU's
		return !strings.Contains(other, "://") && strings.Contains(other, path.Base(own)), nil
	case path.Base(other) != path.Base(own):
		return false, nil
	}
	return m.mayBe(ctx, other)
}

// mayBe reports whether another path with the name of the file may lead to it.
func (m *master) mayBe(ctx context.Context, other string) (bool, error) {
	if m.own == nil {
		own, err := m.volumeAt(ctx, m.path)
		if err != nil {
			return false, err
		}
		m.own = &own
	}
	if m.own.Path == "" {
		return false, nil
	}
	there, err := m.volumeAt(ctx, other)
	if there.Path == "" || err != nil {
		return err == nil, err
	}
	before := *m.own
	if *m.own, err = m.volumeAt(ctx, m.path); err != nil {
		return false, err
	}
	isWritten := before.Physical != m.own.Physical || before.Modified != m.own.Modified // meanwhile, so that it can't be told
	return isWritten || there.Physical == before.Physical && there.Modified == before.Modified, nil
}

// volumeAt is the volume of a path, without a path if it is in no active storage pool. libvirt may not be able to describe it.
func (m *master) volumeAt(ctx context.Context, path string) (host.StorageVolume, error) {
	v, err := m.host.VolumeAt(ctx, path)
	if errors.Is(err, host.ErrUndescribed) {
		err = nil
	}
	return v, ignoreNotFound(err)
}

// isOpened reports whether a domain has the master, or what may be it, in a chain.
func (m *master) isOpened(ctx context.Context, opened Opened) (is bool, err error) {
	for _, i := range opened {
		switch {
		case is || err != nil:
			return is, err
		case path.Base(i.Name) != path.Base(m.path):
		case i.Type != "file" || path.Clean(i.Name) == path.Clean(m.path):
			is = true
		default:
			is, err = m.mayBe(ctx, i.Name)
		}
	}
	return is, err
}

// byOtherPaths lists the disks of domains that may be the master, by another path. Disks that virtclaim has attached never have such paths.
func (m *master) byOtherPaths(ctx context.Context, opened Opened) (disks []string, err error) {
	for _, i := range opened {
		if i.Type != "file" || i.isNoted() || path.Clean(i.Name) == path.Clean(m.path) || path.Base(i.Name) != path.Base(m.path) {
			continue
		}
		is, err := m.mayBe(ctx, i.Name)
		if err != nil {
			return nil, err
		}
		if disk := i.Name + " of domain " + i.domain.Name; is && !strings.Contains(strings.Join(disks, "\n"), disk) {
			disks = append(disks, disk)
		}
	}
	return disks, nil
}

// overlays are those of volumes whose headers reference the master and were not written by the guest of a raw disk: a guest has written the
// header if all domains have the volume as raw, and one of them proves it, or if the ledger records it as raw.
func (m *master) overlays(ctx context.Context, h Identities, volumes []host.StorageVolume, opened Opened,
	proves func(openedImage) bool,
) (all []host.StorageVolume, err error) {
	for _, v := range volumes {
		if v.Undescribed {
			if v.Backing, err = Named(ctx, h, v); ignoreNotFound(err) != nil {
				return nil, err
			}
		}
		is := false
		if v.Backing != "" {
			is, err = m.isNamed(ctx, v.Backing, v.Path)
		}
		if is && err == nil {
			is, err = opened.isOverlay(ctx, h, v, proves)
		}
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, v)
		}
	}
	return all, nil
}

func (all Opened) isOverlay(ctx context.Context, h Identities, v host.StorageVolume, proves func(openedImage) bool) (bool, error) {
	asRaw, asOther := false, false
	for i := range all.of(v) {
		asRaw, asOther = asRaw || i.Format == "raw" && proves(i), asOther || i.Format != "raw"
	}
	if asRaw || asOther {
		return asOther, nil
	}
	e, err := noted(ctx, h, v)
	if err != nil {
		return false, err
	}
	isRaw, err := e.isRaw(ctx, h, v)
	return !isRaw && err == nil, ignoreNotFound(err)
}

// Named is the backing file in the header of a volume, as an absolute path if it is a file; empty without one. It is for volumes that
// libvirt can't describe.
func Named(ctx context.Context, h interface {
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
}, v host.StorageVolume,
) (string, error) {
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	name, _ := image.Backing(head)
	if err != nil || name == "" {
		return "", err
	}
	return absolute(name, v.Path), nil
}
