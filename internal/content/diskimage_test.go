package content_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// folders is a host with a folder that may have a disk.img, or gets one when its creation is refused.
type folders struct {
	// is and late are what a look finds, before and after a refused creation.
	is, late error
	did      []string
	fail     error
	head     []byte
	// byPath is why the header can't be read by the file's path.
	byPath error
	// busy is why the pool of a killed apply can't be ended.
	busy error
}

func (f *folders) File(_ context.Context, path string, head int) (host.File, error) {
	f.did = append(f.did, "look at "+path)
	is := host.File{Length: int64(len(f.head)), Head: f.head[:min(head, len(f.head))], Irregular: f.is}
	if errors.Is(f.is, host.ErrNotFound) {
		return host.File{}, f.is
	}
	return is, nil
}

func (f *folders) ReadFile(_ context.Context, _ string, limit int) ([]byte, error) {
	return f.head[:min(limit, len(f.head))], f.byPath
}

func (f *folders) EndFolder(_ context.Context, path string) error {
	f.did = append(f.did, "end "+path)
	return f.busy
}

func (f *folders) CreateIn(_ context.Context, folder string, xml libvirtxml.StorageVolume) error {
	f.did = append(f.did, "make in "+folder)
	f.is = f.late
	if xml.Name != "disk.img" || xml.Capacity.Value != 7<<20 || xml.Allocation.Value != 0 || xml.Target.Format.Type != "raw" {
		return errors.New("not raw, sparse and aligned")
	}
	return f.fail
}

// MakeDiskImage creates a missing file, leaves regular files alone, and refuses anything else. A folder that has a disk.img is not listed:
// libvirt would open the files that headers there reference.
func TestMakeDiskImage(t *testing.T) {
	const look, create = "look at /mnt/data/disk.img", ", make in /mnt/data"
	full, busy := errors.New("no space left"), errors.New("the pool is busy")
	for name, c := range map[string]struct {
		host folders
		did  string
		err  error
	}{
		"in a folder":   {folders{is: host.ErrNotFound}, look + create, nil},
		"that is there": {folders{}, look + ", end /mnt/data", nil},
		"that is there, in a pool that can't be ended": {folders{busy: busy}, look + ", end /mnt/data", busy},
		"that is a FIFO":                     {folders{is: host.ErrNotRegular}, look, host.ErrNotRegular},
		"on a host that can't tell":          {folders{is: host.ErrCannotTell}, look, host.ErrCannotTell},
		"that another apply makes meanwhile": {folders{is: host.ErrNotFound, fail: host.ErrExists}, look + create + ", " + look, nil},
		"that is a dangling link": {
			folders{is: host.ErrNotFound, late: host.ErrNotRegular, fail: host.ErrExists}, look + create + ", " + look, host.ErrNotRegular,
		},
		"where links are followed": {folders{is: host.ErrNotFound, fail: host.ErrFollowsLinks}, look + create, host.ErrFollowsLinks},
		"on a full disk":           {folders{is: host.ErrNotFound, fail: full}, look + create, full},
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

// An image that is opened as qcow2 is probed each time: a pod may have written a header that references any file of the host.
func TestCheckRegular_ProbesQCOW2(t *testing.T) {
	plain, err := os.ReadFile(qemuImage(t))
	if err != nil {
		t.Fatal(err)
	}
	named, err := os.ReadFile(qemuImage(t, "-o", "data_file="+filepath.Join(t.TempDir(), "data")))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		format, binding string
		head            []byte
		refused         bool
	}{
		"a qcow2 image":               {"qcow2", "b", plain, false},
		"one with a data file":        {"qcow2", "b", named, true},
		"a raw image as qcow2":        {"qcow2", "b", make([]byte, 1<<20), true},
		"what a guest wrote to a raw": {"raw", "b", named, false},
		"a local volume":              {"qcow2", "", named, false},
	} {
		i := volume.Image{Type: "file", Name: "/mnt/disk.img", Format: c.format, Binding: c.binding}
		if err := content.CheckRegular(t.Context(), &folders{head: c.head}, []volume.Image{i}); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		// Where the host can't tell links from files, the header is read by the path, and refused if it can't be read.
		hidden := &folders{head: c.head, is: host.ErrCannotTell}
		if err := content.Recheck(t.Context(), hidden, []volume.Image{i}); (err != nil) != c.refused {
			t.Errorf("%s on a host that can't tell: %v", name, err)
		}
		hidden.byPath = errors.New("permission denied")
		if err := content.Recheck(t.Context(), hidden, []volume.Image{i}); (err != nil) != (c.format == "qcow2" && c.binding != "") {
			t.Errorf("%s that the host can't read: %v", name, err)
		}
	}
	i := volume.Image{Type: "file", Name: "/mnt/disk.img", Format: "qcow2", Binding: "b"}
	if err := content.CheckRegular(t.Context(), &folders{head: plain, is: host.ErrCannotTell}, []volume.Image{i}); !errors.Is(err, host.ErrCannotTell) {
		t.Errorf("nothing warns of links: %v", err)
	}
}

// A file that the host may not read, as on NFS with root_squash, does not keep the next files from being checked.
func TestCheckRegular_AllFiles(t *testing.T) {
	hidden := volume.Image{Type: "file", Name: "/hidden/disk.img", Format: "raw", Binding: "a"}
	link := volume.Image{Type: "file", Name: "/mnt/disk.img", Format: "raw", Binding: "b"}
	h := &partlyHidden{folders{is: host.ErrNotRegular}}
	for _, images := range [][]volume.Image{{hidden, link}, {link, hidden}} {
		if err := content.Recheck(t.Context(), h, images); !errors.Is(err, host.ErrNotRegular) {
			t.Errorf("got %v", err)
		}
	}
	if err := content.CheckRegular(t.Context(), &partlyHidden{}, []volume.Image{hidden, link}); !errors.Is(err, host.ErrCannotTell) {
		t.Errorf("got %v", err)
	}
}

// partlyHidden is a host that may not read some files.
type partlyHidden struct{ folders }

func (h *partlyHidden) File(ctx context.Context, path string, head int) (host.File, error) {
	if strings.HasPrefix(path, "/hidden/") {
		return host.File{Irregular: host.ErrCannotTell}, nil
	}
	return h.folders.File(ctx, path, head)
}

// One look both checks a file and measures it.
func TestMeasureFile_InspectsOnce(t *testing.T) {
	h := &folders{head: make([]byte, 1000)}
	if is, err := content.MeasureFile(t.Context(), h, "/mnt/disk.img"); err != nil || is.Size != 1024 || len(is.Head) != 1000 || len(h.did) != 1 {
		t.Errorf("it did %q: %d bytes, %v", h.did, is.Size, err)
	}
	for _, why := range []error{host.ErrNotRegular, host.ErrCannotTell, host.ErrNotFound} {
		if _, err := content.MeasureFile(t.Context(), &folders{head: make([]byte, 1000), is: why}, "/mnt/disk.img"); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
	}
}

// qemuImage creates a qcow2 image and returns its path.
func qemuImage(t *testing.T, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	args := append([]string{"create", "-q", "-f", "qcow2"}, options...)
	if out, err := exec.CommandContext(t.Context(), "qemu-img", append(args, path, "1M")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
