//go:build acc

package virtualmachine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// tenant is a folder of a host with unprivileged QEMU that pods write to, and a file of the host that is not the tenant's. libvirt changes
// the owner of the files that a machine opens to QEMU's user, so a changed owner shows that the file was opened.
type tenant struct {
	host *lab.Host
	// folder and secret are paths of this machine, image and target those of disk.img and the secret on the host.
	folder, secret, image, target string
}

const confidential = "confidential"

func newTenant(t *testing.T, l *lab.Lab) tenant {
	t.Helper()
	h := acctest.Must(l.DefaultConfigHost(t.Context()))(t)
	folder := acctest.Must(os.MkdirTemp(filepath.Join(h.Dir, "pools"), "tenant-"))(t)
	acctest.Undo(t, func(context.Context) error { return os.RemoveAll(folder) })
	secret := folder + "-secret"
	acctest.Undo(t, func(context.Context) error { return os.Remove(secret) })
	err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(secret, []byte(confidential+strings.Repeat("\n", 1<<20)), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	onHost := func(here string) string { return filepath.Join(h.Pools, filepath.Base(here)) }
	return tenant{h, folder, secret, onHost(folder) + "/disk.img", onHost(secret)}
}

// put has the tenant replace disk.img.
func (x tenant) put(t *testing.T, create func(path string) error) func() {
	t.Helper()
	return func() {
		path := filepath.Join(x.folder, "disk.img")
		_ = os.Remove(path)
		if err := create(path); err != nil {
			t.Fatal(err)
		}
	}
}

func linkTo(target string) func(string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

// qcow2 creates an empty image, and split one that has its data in another file.
func qcow2(path string) error {
	return exec.CommandContext(context.Background(), "qemu-img", "create", "-q", "-f", "qcow2", path, "4M").Run()
}

func split(path string) error {
	return exec.CommandContext(context.Background(), "qemu-img", "create", "-q", "-f", "qcow2", "-o", "data_file="+path+".data", path, "4M").Run()
}

// isUntouched checks that the secret and its owner are unchanged.
func (x tenant) isUntouched(t *testing.T) {
	t.Helper()
	info, err := os.Stat(x.secret)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner != uint32(os.Getuid()) || info.Mode() != 0o600 || info.Size() != int64(len(confidential))+1<<20 {
		t.Errorf("the file that the link leads to has the owner %d, the mode %s and %d bytes", owner, info.Mode(), info.Size())
	}
}

// A claim whose disk.img is a link, a FIFO or missing is not bound, and a machine does not start with a disk.img that has become a link;
// the link's target is neither opened nor changed.
func TestAccVolumeBinding_NeverFollowsLinksInClaims(t *testing.T) {
	l := acctest.Lab(t)
	x := newTenant(t, l)
	provider := strings.Replace(acctest.Provider(l, "links"), "hosts = {", fmt.Sprintf("hosts = {\n    host-c = { uri = %q }", x.host.URI), 1)
	folder := filepath.Dir(x.image)
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"host":    {HostPath: &corev1.HostPathVolumeSource{Path: folder}},
		"local":   {Local: &corev1.LocalVolumeSource{Path: folder}},
		"mounted": {CSI: &corev1.CSIPersistentVolumeSource{Driver: "files.example.com", VolumeHandle: "1"}},
	} {
		spec := lab.ClaimSpec{Namespace: "links", Name: name, Source: &source, Size: 4 << 20, Filesystem: true}
		if source.Local != nil {
			spec.NodeAffinity = onNode("host-c")
		}
		acctest.AddClaim(t, l, spec)
	}
	of := func(claim, options string) string {
		return provider + bound(fmt.Sprintf(`persistent_volume_claim = { namespace = "links", claim_name = %q, %s }`, claim, options), "write-exclusive", "host-c")
	}
	mountPath := fmt.Sprintf("mount_path = %q", folder)
	direct := provider + bound(fmt.Sprintf(`file = { path = %q, format = "qcow2" }`, x.image), "write-exclusive", "host-c")
	refused := message(x.image+": there is no regular file", "it is a symbolic link")
	neverMade := message("The volume could not be bound", x.image+" can't be made", "never replaced or followed")
	log, _, err := x.host.AddConsole("links.log")
	if err != nil {
		t.Fatal(err)
	}
	off := machine{host: "host-c", log: log, disks: []string{disk("data", "data", "virtio")}, more: "running = false"}.hcl(l)
	off = strings.NewReplacer(l.Guest.Kernel, x.host.Guest.Kernel, l.Guest.Initrd, x.host.Guest.Initrd).Replace(off)
	untouched := func(*terraform.State) error { x.isUntouched(t); return nil }
	link, fifo := x.put(t, linkTo(x.target)), x.put(t, func(path string) error { return syscall.Mkfifo(path, 0o666) })
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{PreConfig: link, Config: of("host", ""), ExpectError: refused},
			{Config: of("local", ""), ExpectError: refused},
			{Config: of("mounted", mountPath), ExpectError: refused},
			{Config: of("mounted", mountPath+", create_disk_image = true"), ExpectError: neverMade},
			{PreConfig: x.put(t, linkTo("made-by-host")), Config: of("mounted", mountPath+", create_disk_image = true"), ExpectError: neverMade},
			{PreConfig: fifo, Config: of("host", ""), ExpectError: refused},
			{
				PreConfig: x.put(t, func(path string) error { return os.WriteFile(path, make([]byte, 4<<20), 0o600) }),
				Config:    of("host", "") + off, Check: untouched,
			},
			{PreConfig: link, Config: of("host", "") + strings.Replace(off, "running = false", "", 1), ExpectError: refused},
			// So is the header of an image that is opened as qcow2: it can name any file of the host, too.
			{PreConfig: x.put(t, qcow2), Config: direct + off, Check: untouched},
			{
				PreConfig:   x.put(t, split),
				Config:      direct + strings.Replace(off, "running = false", "", 1),
				ExpectError: message(x.image+" is opened as qcow2", "data in another file"),
			},
		},
	})
	x.isUntouched(t)
	if _, err := os.Lstat(filepath.Join(x.folder, "made-by-host")); !os.IsNotExist(err) {
		t.Error("a file was made where a dangling link leads:", err)
	}
}
