//go:build acc

package host_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// writable creates a folder that a pod writes to, with a file of each kind and a qcow2 header whose backing file libvirt would open to
// probe its format: a FIFO, at which it would wait forever.
func writable(t *testing.T) (dir string) {
	t.Helper()
	root := t.TempDir()
	dir = filepath.Join(root, "with space")
	in := func(name string) string { return filepath.Join(dir, name) }
	secret := filepath.Join(root, "secret")
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	err = errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(secret, []byte("secret"), 0o600), os.WriteFile(in("plain"), []byte("plain"), 0o600),
		os.WriteFile(in("empty"), nil, 0o600), os.Mkdir(in("folder"), 0o755), os.Symlink(secret, in("link")), os.Symlink("plain", in("beside")),
		os.Symlink("nowhere", in("dangling")), os.Symlink(dir, filepath.Join(root, "parent")),
		syscall.Mkfifo(in("fifo"), 0o600), os.Rename(filepath.Join(root, "socket"), in("socket")),
		syscall.Mknod(in("null"), syscall.S_IFCHR|0o666, 1<<8|3), os.WriteFile(in("backing"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	image := in("waits")
	out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", "-u", "-b", in("fifo"), "-F", "raw", image, "1M").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	head, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	format := []byte{0xe2, 0x79, 0x2a, 0xca} // the header extension that names the backing file's format
	if !bytes.Contains(head, format) {
		t.Fatal("the image does not name the format of its backing file")
	}
	if err := os.WriteFile(image, bytes.Replace(head, format, []byte("none"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func inspect(t *testing.T, h *host.Host, path string) error {
	t.Helper()
	is, err := h.File(t.Context(), path, 0)
	return cmp.Or(err, is.Irregular)
}

// A path is a regular file only if neither it nor a folder above it is a link; no file in its folder is opened, and nothing remains.
func TestAccRegularFile(t *testing.T) {
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	dir := writable(t)
	for name, want := range map[string]error{
		"plain": nil, "waits": nil, "empty": host.ErrNotRegular, "folder": host.ErrNotRegular, "link": host.ErrNotRegular,
		"beside": host.ErrNotRegular, "dangling": host.ErrNotRegular, "fifo": host.ErrNotRegular, "socket": host.ErrNotRegular,
		"null": host.ErrNotRegular, "missing": host.ErrNotFound, "../parent/plain": host.ErrNotRegular, "folder/missing": host.ErrNotFound,
	} {
		if err := inspect(t, h, filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	for size, want := range map[int]string{3: "pla", 5: "plain", 64 << 10: "plain"} {
		if is, err := h.File(t.Context(), filepath.Join(dir, "plain"), size); err != nil || is.Irregular != nil || string(is.Head) != want {
			t.Errorf("it begins with %q, %v, want %q", is.Head, cmp.Or(err, is.Irregular), want)
		}
		if head, err := h.ReadFile(t.Context(), filepath.Join(dir, "plain"), size); err != nil || string(head) != want {
			t.Errorf("read by its path it begins with %q, %v, want %q", head, err, want)
		}
	}
	if head, err := h.ReadFile(t.Context(), filepath.Join(dir, "missing"), 5); err == nil {
		t.Errorf("a missing file begins with %q", head)
	}
}

// An inspection takes few calls, because each one takes the time of the network; the first inspection of a host also finds out whether it shows its mounts.
func TestAccFile_Calls(t *testing.T) {
	h, tap := tapped(t, acctest.Lab(t))
	path := filepath.Join(writable(t), "plain")
	calls := func() (n int) {
		for c := range lab.Call(1000) {
			n += tap.Calls(c)
		}
		return n
	}
	if err := inspect(t, h, path); err != nil {
		t.Fatal(err)
	}
	for head, most := range map[int]int{0: 17, 5: 18, 64 << 10: 18} {
		before := calls()
		if is, err := h.File(t.Context(), path, head); err != nil || is.Irregular != nil || len(is.Head) != min(head, 5) {
			t.Errorf("%+v, %v", is, err)
		}
		if n := calls() - before; n > most {
			t.Errorf("an inspection with a head of %d bytes takes %d calls, want %d", head, n, most)
		}
	}
}

// A file is mounted in a folder that only root can enter, because its original folder may be private.
func TestAccRegularFile_InPrivate(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	path := filepath.Join(writable(t), "plain")
	sum := sha256.Sum256([]byte(path))
	folder := filepath.Join(on.Dir, "run", "virtclaim", "virtclaim-inspect-"+hex.EncodeToString(sum[:8]))
	for seen, tries := false, 0; !seen && tries < 20; tries++ {
		done := make(chan error)
		go func() { done <- inspect(t, h, path) }()
		for inspections := true; inspections; {
			select {
			case err := <-done:
				inspections = false
				if err != nil {
					t.Fatal(err)
				}
			default:
			}
			if is, err := os.Stat(folder); err == nil {
				seen = true
				if is.Mode().Perm() != 0o700 {
					t.Fatalf("it is mounted in a folder with the mode %v", is.Mode())
				}
			}
		}
		if !seen && tries == 19 {
			t.Error("no look was seen")
		}
	}
}

// An interrupted apply has left its inspection of a file. The next inspection removes it.
func TestAccRegularFile_AfterInterruption(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	dir := writable(t)
	path := filepath.Join(dir, "fifo")
	sum := sha256.Sum256([]byte(path))
	name := "virtclaim-inspect-" + hex.EncodeToString(sum[:8])
	target := "/run/libvirt/virtclaim/" + name
	virsh := func(args ...string) error {
		out, err := exec.CommandContext(t.Context(), "virsh", append([]string{"-c", on.URI}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
	pool := filepath.Join(t.TempDir(), "pool.xml")
	xml := fmt.Sprintf("<pool type='fs'><name>bind</name><source><device path='%s'/></source><target><path>%s/bound</path></target>"+
		"<mount_opts xmlns='http://libvirt.org/schemas/storagepool/fs/1.0'><option name='bind'/></mount_opts></pool>", filepath.Join(dir, "plain"), target)
	err := errors.Join(virsh("pool-define-as", name, "dir", "--target", target), virsh("pool-build", name), virsh("pool-start", name),
		virsh("vol-create-as", name, "bound", "0", "--format", "raw"), os.WriteFile(pool, []byte(xml), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := virsh("pool-create", pool); err == nil {
		t.Fatal("a pool has a file as its folder")
	}
	for range 2 {
		if err := h.EndInspection(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
	if err := virsh("pool-info", name); err == nil {
		t.Error("the pool is left")
	}
}

// A failed unmount of another file has left a pool with the filesystem as its source, which no other pool can have then.
func TestAccFile_AfterABusyUnmount(t *testing.T) {
	h, on := hostA(t, acctest.Lab(t))
	path := filepath.Join(writable(t), "plain")
	source := strings.TrimSpace(string(acctest.Must(exec.CommandContext(t.Context(), "findmnt", "--noheadings", "--nofsroot", "--output", "SOURCE", "--target", path).Output())(t)))
	busy := "virtclaim-inspect-0123456789abcdef-unmount"
	mounted := t.TempDir()
	acctest.RefuseLinks(t, on, mounted)
	virsh(t, on, "pool-create-as", busy, "fs", "--source-dev", source, "--target", mounted)
	for range 2 {
		if err := inspect(t, h, path); err != nil {
			t.Error(err)
		}
	}
	if pools := virsh(t, on, "pool-list", "--all", "--name"); strings.Contains(pools, "virtclaim-inspect-") {
		t.Errorf("it is left:\n%s", pools)
	}
}

// libvirtd stops during an inspection of a file that names a FIFO. It reads nothing of that file when it starts again, and the next inspection
// removes the remains.
func TestAccRegularFile_LibvirtdStopsMeanwhile(t *testing.T) {
	l := acctest.Lab(t)
	h, tap := tapped(t, l)
	on := l.Hosts["host-a"]
	path := filepath.Join(writable(t), "waits")
	tap.Arm(lab.Fault{Call: lab.CallPoolCreateXML, Nth: 1, After: true})
	if err := inspect(t, h, path); !tap.Fired() {
		t.Fatal(err)
	}
	if !strings.Contains(virsh(t, on, "pool-list", "--name"), "virtclaim-inspect-") {
		t.Fatal("it has left nothing")
	}
	if err := errors.Join(on.Stop(t.Context()), on.Start(soon(t, 30*time.Second))); err != nil {
		t.Fatal(err)
	}
	h, _ = hostA(t, l)
	if err := h.EndInspection(soon(t, 30*time.Second), path); err != nil {
		t.Error(err)
	}
	if err := inspect(t, h, path); err != nil {
		t.Error(err)
	}
	if pools := virsh(t, on, "pool-list", "--all", "--name"); strings.Contains(pools, "virtclaim-inspect-") {
		t.Errorf("it is left:\n%s", pools)
	}
}

// Several applies inspect one path, and other paths of its filesystem, at the same time.
func TestAccRegularFile_SeveralAtOnce(t *testing.T) {
	l := acctest.Lab(t)
	dir := writable(t)
	var inspections errgroup.Group
	for range 3 {
		h, _ := hostA(t, l)
		for _, name := range []string{"plain", "waits"} {
			inspections.Go(func() error {
				return errors.Join(inspect(t, h, filepath.Join(dir, name)), inspect(t, h, filepath.Join(dir, name)))
			})
		}
	}
	if err := inspections.Wait(); err != nil {
		t.Error(err)
	}
}

// A file is read by any path that leads to it. Anything but a regular file is not opened.
func TestAccFile(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	dir := writable(t)
	root := filepath.Dir(dir)
	plain, err := h.File(t.Context(), filepath.Join(dir, "plain"), 3)
	if err != nil || string(plain.Head) != "pla" {
		t.Fatalf("it begins with %q: %v", plain.Head, err)
	}
	for other, want := range map[string]string{
		filepath.Join(dir, "beside"): "plain", filepath.Join(root, "parent", "plain"): "plain", "/proc/self/root" + filepath.Join(dir, "plain"): "plain",
		filepath.Join(dir, "link"): "secret", filepath.Join(dir, "empty"): "", filepath.Join(dir, "fifo"): "", filepath.Join(dir, "null"): "",
	} {
		if is, err := h.File(t.Context(), other, 10); err != nil || string(is.Head) != want {
			t.Errorf("%s: %+v, %v", other, is, err)
		}
	}
	if plain.Length != 5 || plain.Modified == "" {
		t.Errorf("it has %d bytes, and was modified at %q", plain.Length, plain.Modified)
	}
	for _, other := range []string{"dangling", "missing", "folder"} {
		if _, err := h.File(t.Context(), filepath.Join(dir, other), 0); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s: %v", other, err)
		}
	}
}
