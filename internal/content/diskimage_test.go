package content_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// folders is a host with a folder that has files, by their types, and one that appears when its making is refused.
type folders struct {
	files map[string]string
	late  string
	did   []string
	fail  error
}

func (f *folders) InFolder(ctx context.Context, path string, use func(context.Context, string) error) error {
	f.did = append(f.did, "open "+path)
	return use(ctx, path)
}

func (f *folders) Volume(_ context.Context, pool, name string) (host.StorageVolume, error) {
	if kind, ok := f.files[name]; ok {
		return host.StorageVolume{Pool: pool, Name: name, Type: kind}, nil
	}
	return host.StorageVolume{}, host.ErrNotFound
}

func (f *folders) CreateVolume(_ context.Context, _ string, xml libvirtxml.StorageVolume, _ bool) error {
	f.did = append(f.did, "make")
	if f.late != "" {
		f.files = map[string]string{"disk.img": f.late}
	}
	if xml.Capacity.Value != 7<<20 || xml.Allocation.Value != 0 || xml.Target.Format.Type != "raw" {
		return errors.New("not raw, sparse and aligned")
	}
	return f.fail
}

// MakeDiskImage makes what is missing, leaves regular files alone, and refuses anything else.
func TestMakeDiskImage(t *testing.T) {
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		host folders
		did  string
		err  error
	}{
		"in a folder":                   {folders{}, "open /mnt/data, make", nil},
		"that is there":                 {folders{files: map[string]string{"disk.img": "file"}}, "open /mnt/data", nil},
		"that is a folder":              {folders{files: map[string]string{"disk.img": "dir"}}, "open /mnt/data", content.ErrNotRegular},
		"that somebody makes meanwhile": {folders{late: "file", fail: host.ErrExists}, "open /mnt/data, make", nil},
		"that is a link":                {folders{fail: host.ErrExists}, "open /mnt/data, make", content.ErrNotRegular},
		"on a full disk":                {folders{fail: full}, "open /mnt/data, make", full},
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
