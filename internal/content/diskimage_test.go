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

// folders is a host with a folder that may have a disk.img, and one that appears when its making is refused.
type folders struct {
	// is and late are what RegularFile says of it.
	is, late error
	did      []string
	fail     error
}

func (f *folders) RegularFile(_ context.Context, path string) error {
	f.did = append(f.did, "look at "+path)
	return f.is
}

func (f *folders) InFolder(ctx context.Context, path string, use func(context.Context, string) error) error {
	f.did = append(f.did, "open "+path)
	return use(ctx, path)
}

func (f *folders) CreateVolume(_ context.Context, _ string, xml libvirtxml.StorageVolume, _ bool) error {
	f.did = append(f.did, "make")
	f.is = f.late
	if xml.Name != "disk.img" || xml.Capacity.Value != 7<<20 || xml.Allocation.Value != 0 || xml.Target.Format.Type != "raw" {
		return errors.New("not raw, sparse and aligned")
	}
	return f.fail
}

// MakeDiskImage makes what is missing, leaves regular files alone, and refuses anything else. A folder that has a disk.img is not listed:
// libvirt would open what the files there name.
func TestMakeDiskImage(t *testing.T) {
	const look, create = "look at /mnt/data/disk.img", ", open /mnt/data, make"
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		host folders
		did  string
		err  error
	}{
		"in a folder":                        {folders{is: host.ErrNotFound}, look + create, nil},
		"that is there":                      {folders{}, look, nil},
		"that is a FIFO":                     {folders{is: host.ErrNotRegular}, look, host.ErrNotRegular},
		"on a host that can't tell":          {folders{is: host.ErrCannotTell}, look, host.ErrCannotTell},
		"that another apply makes meanwhile": {folders{is: host.ErrNotFound, fail: host.ErrExists}, look + create + ", " + look, nil},
		"that is a dangling link": {
			folders{is: host.ErrNotFound, late: host.ErrNotRegular, fail: host.ErrExists}, look + create + ", " + look, host.ErrNotRegular,
		},
		"on a full disk": {folders{is: host.ErrNotFound, fail: full}, look + create, full},
	} {
		t.Run(name, func(t *testing.T) {
			err := content.MakeDiskImage(t.Context(), &c.host, "/mnt/data/disk.img", 8<<20-1)
			if did := strings.Join(c.host.did, ", "); !errors.Is(err, c.err) || did != c.did {
				t.Errorf("it did %q, %v; want %q, %v", did, err, c.did, c.err)
			}
		})
	}
	if err := content.MakeDiskImage(t.Context(), &folders{}, "/mnt/disk.img", 1<<20-1); err == nil {
		t.Error("a claim of less than 1 MiB got a disk.img")
	}
}
