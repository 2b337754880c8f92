package content

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// ErrLinked is the error of removing a volume that a domain uses by another path of its file.
var ErrLinked = errors.New("a domain has a file of that name by another path, which may be the same file")

// ErrBacking is the error of removing a volume that has overlays.
var ErrBacking = errors.New("other volumes are overlays of it, which would be lost with it")

// Remove deletes a volume, which Removable has allowed. A missing volume is a success, also if another one has its name.
func (m *Creator) Remove(ctx context.Context, key string, h Host, pool, name, generation string) error {
	err := h.DeleteVolume(ctx, pool, name)
	switch {
	case err == nil:
		err = dropEntry(ctx, h, pool, name)
	case ignoreNotFound(err) == nil:
		err = Disown(ctx, h, pool, name, generation)
	}
	if err != nil {
		return err
	}
	m.release(Spec{Pool: pool, Name: name}.claimKey(key))
	return nil
}

// Removable is a volume that may be removed, or ErrBacking, ErrLinked, or an error of Recognize. A missing volume is host.ErrNotFound, also
// if another one has its name. domains are those of the host. The caller checks whether a machine uses it.
func Removable(ctx context.Context, h Host, domains []domainxml.Definitions, pool, name, format, generation string) (*Seen, error) {
	v, err := h.Volume(ctx, pool, name)
	if err = Described(err, format); err != nil {
		return nil, err
	}
	s, err := See(ctx, h, v, format)
	if err != nil {
		return nil, err
	}
	if err := Recognize(s, format, generation); err != nil {
		return nil, err
	}
	of, opened := &master{host: h, path: v.Path}, OpenedBy(domains)
	volumes, err := h.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	above, err := of.overlays(ctx, h, volumes, opened, openedImage.isNoted)
	if err != nil {
		return s, err
	}
	if len(above) > 0 {
		return s, fmt.Errorf("the volume %s in storage pool %s: %w: %s. Remove those first, unless one is a raw disk whose "+
			"guest wrote such a header. "+guide.See+
			"troubleshooting#volumes-over-a-master",
			name, pool, ErrBacking, strings.Join(namesOf(above), ", "))
	}
	if v.Type != "file" {
		return s, nil
	}
	if err := CheckStarts(domains, v.Path); err != nil {
		return s, err
	}
	linked, err := of.byOtherPaths(ctx, opened)
	if err == nil && len(linked) > 0 {
		err = fmt.Errorf("the volume %s in storage pool %s: %w: %s. Take it out of that domain first (virsh detach-disk). If that is "+
			"another file of the same name, give one of the two another name", name, pool, ErrLinked, strings.Join(linked, ", "))
	}
	return s, err
}

// CheckStarts is an error if a domain needs one of the files of its host to start, or to be restored or moved. What runs has read its
// kernel; only a transient domain has no other definition.
func CheckStarts(domains []domainxml.Definitions, paths ...string) error {
	needs := func(files ...[]string) bool {
		return slices.ContainsFunc(slices.Concat(files...), func(file string) bool { return slices.Contains(paths, file) })
	}
	for _, d := range domains {
		isTransient := d.Stored == nil && needs(d.Live.BootFiles())
		switch {
		case needs(d.Stored.BootFiles(), d.Stored.FWCfgFiles()) || isTransient:
			return fmt.Errorf("domain %s reads it when it starts, and would not start without it. Give that another one, or none, in an "+
				"apply before this one. One that is replaced needs lifecycle { create_before_destroy = true } and, on the same host, a "+
				"name_prefix", d.Name)
		case needs(d.Saved.BootFiles(), d.Saved.FWCfgFiles(), d.Live.FWCfgFiles()):
			return fmt.Errorf("domain %s was started with it, and could not be saved and restored, or moved, without it. Shut it down and "+
				"start it again first", d.Name)
		}
	}
	return nil
}

// RemoveTransients removes the overlays of an ephemeral disk that libvirt has left, and returns their paths. While a domain runs, libvirt
// has one over each of them. It stays when libvirtd and QEMU die together, and libvirt does not start the domain again while it is there.
// With a uuid, only that domain's is removed: in a shared folder there may be those of other hosts.
func RemoveTransients(ctx context.Context, h interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	State(ctx context.Context, uuid string) (host.State, error)
	KnownOverlays(ctx context.Context, pool string) ([]host.StorageVolume, error)
	DeleteVolume(ctx context.Context, pool, name string) error
}, pool, disk, uuid string,
) (removed []string, err error) {
	above, err := h.KnownOverlays(ctx, pool)
	for _, o := range above {
		domain, is := strings.CutPrefix(o.Path, disk+".TRANSIENT-")
		if !is || absolute(o.Backing, o.Path) != disk {
			continue
		}
		var state host.State
		id, err := h.LookupByName(ctx, domain)
		if err == nil {
			state, err = h.State(ctx, id)
		}
		if ignoreNotFound(err) != nil || state.Active || uuid != "" && id != uuid {
			continue
		}
		if err := h.DeleteVolume(ctx, o.Pool, o.Name); err != nil {
			return removed, err
		}
		removed = append(removed, o.Path)
	}
	return removed, err
}
