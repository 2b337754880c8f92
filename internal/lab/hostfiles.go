package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// pools are the storage pools of each host.
var pools = []string{"ssd", "rust"}

// maxSocketPath is the kernel's limit, in bytes, for the path of a unix socket.
const maxSocketPath = 107

const (
	// inSandboxQEMU has libvirt run QEMU without cgroups, namespaces and helpers, because the sandbox has all of that. A security driver
	// would have to load its profiles into the machine's kernel.
	inSandboxQEMU = `security_driver = "none"
namespaces = []
cgroup_controllers = []
`
	// asRootQEMU has libvirt leave the owners of files unchanged, and QEMU write its logs itself.
	asRootQEMU = `stdio_handler = "file"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
swtpm_user = "root"
swtpm_group = "root"
`
)

func (h *Host) writeConfiguration() error {
	longest := filepath.Join(filepath.Dir(h.socket), "libvirt-admin-sock")
	if len(longest) > maxSocketPath {
		return fmt.Errorf("the path of libvirt's socket %s has %d bytes, %d are allowed: move the checkout to a shorter path",
			longest, len(longest), maxSocketPath)
	}
	files := map[string]string{
		"etc/libvirtd.conf": fmt.Sprintf(`unix_sock_dir = %q
unix_sock_rw_perms = "0777"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:stderr"
host_uuid = %q
`, filepath.Dir(h.socket), uuid.NewString()) + h.libvirtd,
		"etc/qemu.conf":  inSandboxQEMU + h.qemu,
		"ceph/ceph.conf": cephClientConfiguration,
	}
	for _, folder := range []string{"etc", "sock", "ceph", "consoles"} {
		if err := makeFolder(filepath.Join(h.Dir, folder)); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(h.Dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // see makeFolder
			return err
		}
	}
	return nil
}

// makeFolder creates a folder that all users of a host may enter. Users of the machine can't, because the lab's own folder is private.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // intended
}

// AddConsole creates a file that the serial port of a guest can log to, and returns its path on the host and on this machine. One that
// libvirt creates can be read by root only.
func (h *Host) AddConsole(name string) (onHost, here string, err error) {
	here = filepath.Join(h.Dir, "consoles", name)
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		return "", "", err
	}
	return filepath.Join(h.Consoles, name), here, os.Chmod(here, 0o666) //nolint:gosec // the user of QEMU writes it
}

func (h *Host) definePools(ctx context.Context) error {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	for _, name := range pools {
		if err := makeFolder(filepath.Join(h.Dir, "pools", name)); err != nil {
			return err
		}
		if err := definePool(l, name, filepath.Join(h.Pools, name)); err != nil {
			return fmt.Errorf("make the pool %s of %s: %w", name, h.Name, err)
		}
	}
	return nil
}

func definePool(l *libvirt.Libvirt, name, target string) error {
	xml := fmt.Sprintf("<pool type='dir'><name>%s</name><target><path>%s</path></target></pool>", name, target)
	pool, err := l.StoragePoolDefineXML(xml, 0)
	if err != nil {
		return err
	}
	if err := l.StoragePoolSetAutostart(pool, 1); err != nil {
		return err
	}
	return l.StoragePoolCreate(pool, 0)
}
