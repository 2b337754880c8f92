package content

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// ErrLinked is the error of removing a volume that a domain uses by another path of its file.
var ErrLinked = errors.New("a domain uses it by another path of that file")

// ErrBacking is the error of removing a volume that has overlays.
var ErrBacking = errors.New("other volumes are overlays of it, which would be lost with it")

// Remove deletes a volume. A missing volume is a success, also if another one has its name; a volume with overlays on the host is ErrBacking, and
// stays. The caller checks before whether a machine uses it.
func (m *Creator) Remove(ctx context.Context, key string, h Host, pool, name, format, generation string) error {
	// The journal first: without the volume it would never be read again.
	err := Forget(ctx, h, pool, name, generation)
	if err == nil {
		err = Removable(ctx, h, pool, name, format, generation)
	}
	if err == nil {
		err = h.DeleteVolume(ctx, pool, name)
	}
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

// Removable is the error of a volume that Remove would not delete: ErrBacking, or ErrUnrecognized. A missing volume is host.ErrNotFound, also if
// another one has its name.
func Removable(ctx context.Context, h Host, pool, name, format, generation string) error {
	v, err := h.Volume(ctx, pool, name)
	if err = Described(err, format); err == nil {
		err = Recognize(ctx, h, v, format, generation)
	}
	if err == nil {
		err = refuseBacking(ctx, h, v)
	}
	if err == nil {
		err = refuseLinked(ctx, h, v)
	}
	return err
}

// refuseLinked is ErrLinked for a volume that a domain has by another path, and ErrBacking for one of which a domain has an overlay outside of all
// storage pools.
func refuseLinked(ctx context.Context, h Host, v host.StorageVolume) error {
	if v.Type != "file" {
		return nil
	}
	linked, above, err := strangers(ctx, h, v.Path)
	switch {
	case err != nil:
		return err
	case len(linked) > 0:
		return fmt.Errorf("the volume %s in storage pool %s: %w: %s. Take it out of that domain first (virsh detach-disk)",
			v.Name, v.Pool, ErrLinked, strings.Join(linked, ", "))
	case len(above) > 0:
		return fmt.Errorf("the volume %s in storage pool %s: %w: %s. Remove those first", v.Name, v.Pool, ErrBacking, strings.Join(above, ", "))
	}
	return nil
}

func refuseBacking(ctx context.Context, h Host, v host.StorageVolume) error {
	above, err := overlays(ctx, h, newMasterFile(h, v.Path))
	if err != nil || len(above) == 0 {
		return err
	}
	names := make([]string, 0, len(above))
	for _, o := range above {
		names = append(names, o.Pool+"/"+o.Name)
	}
	return fmt.Errorf("the volume %s in storage pool %s: %w: %s. Remove those first. One that is raw, and whose guest wrote such a head, counts "+
		"no more when virtclaim knows that it is raw: import it with format = \"raw\", or give it to a machine of virtclaim's, which need not run. That "+
		"another domain has it as raw proves nothing: a rescue machine may have an overlay so", v.Name, v.Pool, ErrBacking, strings.Join(names, ", "))
}
