package content_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func (h *fakeHost) PoolFree(context.Context, string) (int64, error) { return h.free, nil }

func (h *fakeHost) HasVolume(_ context.Context, pool, name string) (bool, error) {
	return h.volumes[pool+"/"+name] != nil, nil
}

func (h *fakeHost) VolumeNames(_ context.Context, pool string) (names []string, err error) {
	for _, v := range h.volumes {
		if v.Pool == pool {
			names = append(names, v.Name)
		}
	}
	return names, nil
}

func (h *fakeHost) CreateVolume(_ context.Context, pool string, x libvirtxml.StorageVolume, _ bool) error {
	if h.meanwhile != nil {
		h.meanwhile()
	}
	key := pool + "/" + x.Name
	if h.volumes[key] != nil {
		return host.ErrExists
	}
	v := host.StorageVolume{Type: "file", Pool: pool, Name: x.Name, Path: "/" + key, Format: x.Target.Format.Type, Capacity: int64(x.Capacity.Value)}
	if v.Format == "raw" {
		v.Physical = v.Capacity
	}
	if x.BackingStore != nil {
		v.Backing = x.BackingStore.Path
	}
	return h.change(func() { h.volumes[key] = &fakeVolume{StorageVolume: v} })
}

func (h *fakeHost) Volume(_ context.Context, pool, name string) (host.StorageVolume, error) {
	if v := h.volumes[pool+"/"+name]; v != nil {
		return v.StorageVolume, nil
	}
	return host.StorageVolume{}, host.ErrNotFound
}

// Pool has the folder of its name.
func (h *fakeHost) Pool(_ context.Context, name string) (host.Pool, error) {
	return host.Pool{Type: "dir", Path: "/" + name}, nil
}

func (h *fakeHost) VolumeAt(_ context.Context, path string) (host.StorageVolume, error) {
	for _, v := range h.volumes {
		if v.Path == path && v.Undescribed {
			return v.StorageVolume, host.ErrUndescribed
		}
		if v.Path == path {
			return v.StorageVolume, nil
		}
	}
	return host.StorageVolume{}, host.ErrNotFound
}

func (h *fakeHost) DeleteVolume(_ context.Context, pool, name string) error {
	if h.volumes[pool+"/"+name] == nil {
		return host.ErrNotFound
	}
	return h.change(func() { delete(h.volumes, pool+"/"+name) })
}

// File knows the images in no pool. Regular are the volumes whose names are paths.
func (h *fakeHost) File(_ context.Context, path string, head int) (host.File, error) {
	f := host.File{Modified: h.modified[path]}
	if head > 0 {
		f.Head = h.files[path]
	}
	if _, ok := h.volumes[path]; !ok && f.Modified == "" {
		f.Irregular = host.ErrNotRegular
	}
	return f, nil
}

func (h *fakeHost) Overlays(context.Context) (found []host.StorageVolume, err error) {
	for _, v := range h.volumes {
		if v.Undescribed || v.Backing != "" {
			found = append(found, v.StorageVolume)
		}
	}
	return found, nil
}

func (h *fakeHost) Rescan(_ context.Context, pool string) error {
	for _, v := range h.volumes {
		if is, err := image.ProbeOverlay(v.content); err == nil && v.content != nil && v.Pool == pool && is.Format == "qcow2" {
			v.Format, v.Capacity = "qcow2", max(v.Capacity, is.Capacity)
			if below, _ := image.Backing(v.content); below != "" {
				v.Backing = path.Join(path.Dir(v.Path), below)
			}
		}
		if mark := 32769; v.Pool == pool && len(v.content) > mark && bytes.HasPrefix(v.content[mark:], []byte("CD001")) {
			v.Format = "iso"
		}
	}
	return nil
}

func (h *fakeHost) ResizeVolume(_ context.Context, pool, name string, bytes int64) error {
	return h.change(func() { h.volumes[pool+"/"+name].Capacity = bytes })
}

// IsUnfinished reports whether the header is missing, since the content appears all at once.
func (h *fakeHost) IsUnfinished(_ context.Context, pool, name string) (bool, error) {
	v := h.volumes[pool+"/"+name]
	if v == nil {
		return false, host.ErrNotFound
	}
	return v.content == nil, nil
}

func (h *fakeHost) UUID(context.Context) (string, error) { return "this host", nil }

// VolumeHead returns the header of the content, or of an image as libvirt creates it.
func (h *fakeHost) VolumeHead(_ context.Context, pool, name string, n uint64) ([]byte, error) {
	v := h.volumes[pool+"/"+name]
	if v == nil {
		return nil, host.ErrNotFound
	}
	head := v.head
	switch {
	case head != nil:
	case v.content != nil:
		head = v.content
	case v.Format == "qcow2":
		head = qcow2(uint64(v.Capacity))
	}
	return slices.Clone(head[:min(uint64(len(head)), n)]), nil
}

func (h *fakeHost) VolumePart(_ context.Context, pool, name string, offset, n int64) ([]byte, error) {
	v := h.volumes[pool+"/"+name]
	if v == nil {
		return nil, host.ErrNotFound
	}
	at := min(offset, int64(len(v.content)))
	return v.content[at:min(at+n, int64(len(v.content)))], nil
}

// HasLength also knows the length of volumes that can't be described.
func (h *fakeHost) HasLength(_ context.Context, pool, name string, bytes int64) (bool, error) {
	v := h.volumes[pool+"/"+name]
	return v != nil && (v.Physical == bytes || v.length == bytes), nil
}

func (h *fakeHost) WriteVolumeHead(_ context.Context, pool, name string, head []byte) error {
	v := h.volumes[pool+"/"+name]
	if v == nil {
		return host.ErrNotFound
	}
	return h.change(func() { v.head = head })
}

func (h *fakeHost) SecretOfVolume(_ context.Context, usage string) (string, error) {
	if s, ok := h.secrets[usage]; ok {
		return s.UUID, nil
	}
	return "", host.ErrNotFound
}

func (h *fakeHost) SecretsOfVolumes(context.Context) (map[string]string, error) {
	found := map[string]string{}
	for usage, s := range h.secrets {
		found[usage] = s.UUID
	}
	return found, nil
}

func (h *fakeHost) SecretXML(_ context.Context, uuid string) (string, error) {
	for _, s := range h.secrets {
		if s.UUID == uuid {
			return s.Marshal()
		}
	}
	return "", host.ErrNotFound
}

// DefineSecret refuses a second secret with the same usage, as libvirt does.
func (h *fakeHost) DefineSecret(_ context.Context, text string) error {
	var s libvirtxml.Secret
	if err := s.Unmarshal(text); err != nil {
		return err
	}
	if other, ok := h.secrets[s.Usage.Volume]; ok && other.UUID != s.UUID {
		return fmt.Errorf("a secret with UUID %s is already defined for use with %s", other.UUID, s.Usage.Volume)
	}
	return h.change(func() { h.secrets[s.Usage.Volume] = s })
}

func (h *fakeHost) UndefineSecret(_ context.Context, uuid string) error {
	if _, err := h.SecretXML(context.Background(), uuid); err != nil {
		return err
	}
	return h.change(func() {
		maps.DeleteFunc(h.secrets, func(_ string, s libvirtxml.Secret) bool { return s.UUID == uuid })
	})
}

func (h *fakeHost) ReadFile(context.Context, string, int) ([]byte, error) {
	return nil, host.ErrNotFound
}

func (h *fakeHost) CreateIn(context.Context, string, libvirtxml.StorageVolume) error {
	return host.ErrFollowsLinks
}

func (h *fakeHost) EndFolder(context.Context, string) error { return nil }

func (h *fakeHost) KnownOverlays(ctx context.Context, _ string) ([]host.StorageVolume, error) {
	return h.Overlays(ctx)
}
