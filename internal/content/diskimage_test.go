package content_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// folders is a host with pools by target and files by pool.
type folders struct {
	pools map[string]string
	files []string
	did   []string
	fail  error
}

func (f *folders) PoolOfTarget(_ context.Context, path string) (string, error) {
	if pool, ok := f.pools[strings.TrimSuffix(path, "/")]; ok {
		return pool, nil
	}
	return "", host.ErrNotFound
}

func (f *folders) OpenFolder(_ context.Context, name, path string) error {
	f.did = append(f.did, "open "+path)
	f.pools[strings.TrimSuffix(path, "/")] = name
	return nil
}

func (f *folders) CloseFolder(ctx context.Context, _ string) error {
	f.did = append(f.did, "close")
	return ctx.Err()
}

func (f *folders) Volume(_ context.Context, pool, name string) (host.StorageVolume, error) {
	if slices.Contains(f.files, name) {
		return host.StorageVolume{Pool: pool, Name: name}, nil
	}
	return host.StorageVolume{}, host.ErrNotFound
}

func (f *folders) CreateVolume(_ context.Context, _ string, xml libvirtxml.StorageVolume, _ bool) error {
	f.did = append(f.did, "make")
	if xml.Capacity.Value != 7<<20 || xml.Allocation.Value != 0 || xml.Target.Format.Type != "raw" {
		return errors.New("not raw, sparse and aligned")
	}
	return f.fail
}

func TestMakeDiskImage(t *testing.T) {
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		host folders
		did  string
		err  error
	}{
		"in a folder":                    {folders{pools: map[string]string{}}, "open /mnt/data/, make, close", nil},
		"in the folder of a pool":        {folders{pools: map[string]string{"/mnt/data": "data"}}, "make", nil},
		"that is there":                  {folders{pools: map[string]string{}, files: []string{"disk.img"}}, "open /mnt/data/, close", nil},
		"that somebody makes meanwhile":  {folders{pools: map[string]string{}, fail: host.ErrExists}, "open /mnt/data/, make, close", nil},
		"on a full disk":                 {folders{pools: map[string]string{}, fail: full}, "open /mnt/data/, make, close", full},
		"where an interruption left one": {folders{pools: map[string]string{"/mnt/data": "virtclaim-folder-aa7c3a4e25c00c64"}}, "make, close", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := content.MakeDiskImage(ctx, &c.host, "/mnt/data/disk.img", 8<<20-1)
			if did := strings.Join(c.host.did, ", "); !errors.Is(err, c.err) || did != c.did {
				t.Errorf("it did %q, %v; want %q, %v", did, err, c.did, c.err)
			}
		})
	}
	if err := content.MakeDiskImage(t.Context(), &folders{}, "/mnt/disk.img", 1<<20-1); err == nil {
		t.Error("a claim of less than 1 MiB got a disk.img")
	}
}
