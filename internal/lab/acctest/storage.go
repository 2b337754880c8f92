package acctest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// The size in bytes and the beginning of each unit of storage.
const (
	StorageSize = 64 << 20
	Known       = "what the storage had"
)

// Storage is a unit of a real storage server, or of the hosts' own storage, with StorageSize bytes that begin with Known.
type Storage struct {
	// Source is the HCL of the binding's source.
	Source string
	// Stored reads n bytes of the server's content; nil if the storage is read-only.
	Stored func(offset int64, n int) string
}

// Stores create a unit of each protocol for a test.
var Stores = map[string]func(t *testing.T, l *lab.Lab) Storage{
	"iscsi": func(t *testing.T, l *lab.Lab) Storage {
		t.Helper()
		lun := LUN(t, l, false, Known)
		return Storage{
			fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d }", l.Target.Portal, lun.IQN, lun.Number), InFile(t, lun.Path),
		}
	},
	"rbd": func(t *testing.T, l *lab.Lab) Storage {
		t.Helper()
		ceph, image := Ceph(t, l)
		return Storage{fmt.Sprintf("rbd = { monitors = [%q], pool = %q, image = %q, username = %q, key_wo = %q, key_wo_version = 1 }",
			ceph.Monitors[0], image.Pool, image.Image, ceph.User, ceph.Key), InCeph(t, ceph, image)}
	},
	"nbd": func(t *testing.T, l *lab.Lab) Storage {
		t.Helper()
		server := Must(l.NBD(t.Context()))(t)
		export := Must(server.AddExport(t.Context(), lab.NBDSpec{Name: "data", Size: StorageSize, Content: []byte(Known)}))(t)
		Undo(t, func(ctx context.Context) error { return server.RemoveExport(ctx, export) })
		return Storage{fmt.Sprintf("nbd = { server = %q, export = %q }", export.Server, export.Name), InFile(t, export.Path)}
	},
	"nfs": func(t *testing.T, l *lab.Lab) Storage {
		t.Helper()
		dir := NFS(t, l)
		image := ImageIn(t, dir.Path, "data.raw")
		return Storage{fmt.Sprintf("nfs = { server = %q, path = %q }", dir.Server, dir.Export+"/data.raw"), InFile(t, image)}
	},
	"http":  func(t *testing.T, l *lab.Lab) Storage { t.Helper(); return web(t, l, "http") },
	"https": func(t *testing.T, l *lab.Lab) Storage { t.Helper(); return web(t, l, "https") },
	"file": func(t *testing.T, _ *lab.Lab) Storage {
		t.Helper()
		image := ImageIn(t, t.TempDir(), "data.raw")
		return Storage{fmt.Sprintf("file = { path = %q }", image), InFile(t, image)}
	},
	"block": func(t *testing.T, l *lab.Lab) Storage {
		t.Helper()
		device := Loop(t, l)
		return Storage{fmt.Sprintf("block = { path = %q }", device.Path), InFile(t, device.Path)}
	},
}

// Must returns the value, or fails the test.
func Must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Undo runs f at the end of the test, which fails on its error.
func Undo(t *testing.T, f func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := f(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// RefuseLinks mounts a folder of a host onto itself, so that the host follows no symbolic links there during the test.
func RefuseLinks(t *testing.T, h *lab.Host, folder string) {
	t.Helper()
	undo, err := h.RefuseLinks(t.Context(), folder)
	Undo(t, undo)
	if err != nil {
		t.Fatal(err)
	}
}

// InFile reads the file with the storage's content.
func InFile(t *testing.T, path string) func(int64, int) string {
	t.Helper()
	return func(offset int64, n int) string { return StoredAt(t, path, offset, n) }
}

// InCeph reads an image of a Ceph cluster.
func InCeph(t *testing.T, ceph *lab.RBD, image lab.RBDImage) func(int64, int) string {
	t.Helper()
	return func(offset int64, n int) string { return string(Must(ceph.Read(t.Context(), image, offset, n))(t)) }
}

// Ceph creates an image in a Ceph cluster.
func Ceph(t *testing.T, l *lab.Lab) (*lab.RBD, lab.RBDImage) {
	t.Helper()
	ceph := Must(l.RBD(t.Context()))(t)
	image := Must(ceph.AddImage(t.Context(), lab.RBDSpec{Size: StorageSize, Content: []byte(Known)}))(t)
	Undo(t, func(ctx context.Context) error { return ceph.RemoveImage(ctx, image) })
	return ceph, image
}

// NFS creates an exported folder, each time under another name, because the server caches for some time which files a folder did not have.
func NFS(t *testing.T, l *lab.Lab) lab.NFSDir {
	t.Helper()
	server := Must(l.NFS(t.Context()))(t)
	dir := Must(server.AddDir(rand.Text()))(t)
	Undo(t, func(context.Context) error { return server.RemoveDir(dir) })
	return dir
}

// SquashedNFS creates a folder with a disk.img of a user and a group, which a server with root_squash exports.
func SquashedNFS(t *testing.T, l *lab.Lab, uid, gid int) (dir lab.NFSDir, image string) {
	t.Helper()
	server := Must(l.NFS(t.Context()))(t)
	dir = Must(server.AddSquashedDir(rand.Text(), uid, gid))(t)
	Undo(t, func(context.Context) error { return server.RemoveDir(dir) })
	image = ImageIn(t, dir.Path, "disk.img")
	if err := os.Chown(image, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, image
}

// Loop creates a block device.
func Loop(t *testing.T, l *lab.Lab) lab.BlockDevice {
	t.Helper()
	device := Must(l.AddBlockDevice(t.Context(), StorageSize, []byte(Known)))(t)
	Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
	return device
}

func web(t *testing.T, l *lab.Lab, scheme string) Storage {
	t.Helper()
	server, file := Web(t, l)
	return Storage{Source: fmt.Sprintf("http = { url = %q }",
		file.URL(scheme, map[string]string{"http": server.HTTP, "https": server.HTTPS}[scheme]))}
}

// Web creates a file on a web server.
func Web(t *testing.T, l *lab.Lab) (*lab.Web, lab.WebFile) {
	t.Helper()
	server := Must(l.Web(t.Context()))(t)
	file := Must(server.AddFile("data.raw", StorageSize, []byte(Known)))(t)
	Undo(t, func(context.Context) error { return server.RemoveFile(file) })
	return server, file
}

// ImageIn creates a raw image in a folder.
func ImageIn(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(Known), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, StorageSize); err != nil {
		t.Fatal(err)
	}
	return path
}

// AwaitRecords waits until the guest of a machine with lab.WriteRecords has written that many more records to a storage, all of which must
// be whole, and returns the number of all.
func AwaitRecords(t *testing.T, stored func(offset int64, n int) string, more int) (count int) {
	t.Helper()
	before := Records(t, stored)
	Eventually(t, "the guest writes", func() error {
		if count = Records(t, stored); count < before+more {
			return fmt.Errorf("it has written %d records, and %d before", count, before)
		}
		return nil
	})
	return count
}

// Records is the number of records that guests have written to a storage. It fails the test unless all are whole, each was written once,
// and by one boot of one guest.
func Records(t *testing.T, stored func(offset int64, n int) string) int {
	t.Helper()
	return Must(lab.CheckRecords(stored(lab.RecordsAt, lab.RecordsSize)))(t)
}
