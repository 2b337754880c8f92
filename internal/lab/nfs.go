package lab

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// ganeshaConfiguration exports a folder, its first argument, as the second, and one that is its third as the fourth. The first
// has no_root_squash, the other root_squash. The server caches no attributes, because tests change files directly.
const ganeshaConfiguration = `NFS_CORE_PARAM { Protocols = 3, 4; Enable_NLM = false; Enable_RQUOTA = false; mount_path_pseudo = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT_DEFAULTS { Attr_Expiration_Time = 0; }
NFSv4 { Graceless = true; RecoveryBackend = fs; }
EXPORT { Export_Id = 1; Path = %q; Pseudo = %q; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = %q; Pseudo = %q; Access_Type = RW; Squash = Root_Squash; SecType = sys; FSAL { Name = VFS; } }
`

// The paths of the exports, for clients.
const (
	nfsRoot   = "/export"
	nfsSquash = "/squash"
)

// NFS is a server of NFS 3 and 4 on the standard ports: libvirt does not support other ports.
type NFS struct {
	// Server is the address.
	Server string

	dir     string
	sandbox *sandbox
	network *network
}

// NFSDir is a folder that NFS serves.
type NFSDir struct {
	Server string
	// Export is the path for clients, which see the whole folder.
	Export string
	// Path is the folder.
	Path string
}

// URL is the URL of a file of the folder for QEMU's tools. The server treats its user as root.
func (d NFSDir) URL(file string) string {
	return "nfs://" + d.Server + path.Join(d.Export, file) + "?uid=0&gid=0"
}

// NFS returns the lab's NFS server, which the first call starts.
func (l *Lab) NFS(ctx context.Context) (*NFS, error) {
	return l.nfs.get(ctx, func(ctx context.Context) (*NFS, error) {
		dir, err := l.serverFolder("nfs")
		if err != nil {
			return nil, err
		}
		n := &NFS{dir: dir}
		if n.sandbox, err = startSandbox(ctx, l.Dir, "nfs", dir, bind{filepath.Join(dir, "lib"), "/var/lib/nfs"}); err != nil {
			return nil, err
		}
		if n.network, err = newNetwork(ctx, n.sandbox, dir); err != nil {
			return n, err
		}
		n.Server = n.network.Address
		return n, n.start(ctx)
	})
}

// start starts rpcbind, which clients query for ports, and the server, which registers its ports there.
func (n *NFS) start(ctx context.Context) error {
	open, squash := filepath.Join(n.dir, "exports"), filepath.Join(n.dir, "squashed")
	for _, folder := range []string{open, squash, filepath.Join(n.network.run, "ganesha")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	if err := os.Chmod(squash, 0o711); err != nil { //nolint:gosec // the anonymous user, too, must reach the folders in it
		return err
	}
	configuration := filepath.Join(n.dir, "ganesha.conf")
	text := fmt.Sprintf(ganeshaConfiguration, open, nfsRoot, squash, nfsSquash)
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		return err
	}
	rpcbind := startDaemon(n.sandbox, n.dir, "rpcbind", n.network.in("rpcbind -f -i"))
	if err := rpcbind.await(ctx, n.answers("-p %s")); err != nil {
		return fmt.Errorf("start rpcbind: %w", err)
	}
	server := "ganesha.nfsd -F -L /dev/stderr -p /run/ganesha.pid -f " + quote(configuration)
	ganesha := startDaemon(n.sandbox, n.dir, "ganesha", n.network.in(server))
	for _, service := range []string{"-t %s nfs 3", "-t %s mountd 3"} {
		if err := ganesha.await(ctx, n.answers(service)); err != nil {
			return fmt.Errorf("start the NFS server: %w", err)
		}
	}
	return nil
}

// answers queries rpcbind, or a service that is registered there.
func (n *NFS) answers(question string) func(context.Context) error {
	return func(ctx context.Context) error { return n.sandbox.run(ctx, "rpcinfo "+fmt.Sprintf(question, n.Server)) }
}

// AddDir creates a folder and exports it.
func (n *NFS) AddDir(name string) (NFSDir, error) {
	dir := NFSDir{Server: n.Server, Export: path.Join(nfsRoot, name), Path: filepath.Join(n.dir, "exports", name)}
	if err := os.Mkdir(dir.Path, 0o700); err != nil {
		return NFSDir{}, fmt.Errorf("make a folder to export: %w", err)
	}
	return dir, nil
}

// AddSquashedDir creates a folder of that user and group alone, and exports it with root_squash.
func (n *NFS) AddSquashedDir(name string, uid, gid int) (NFSDir, error) {
	dir := NFSDir{Server: n.Server, Export: path.Join(nfsSquash, name), Path: filepath.Join(n.dir, "squashed", name)}
	err := os.Mkdir(dir.Path, 0o700)
	if err == nil {
		err = os.Chown(dir.Path, uid, gid)
	}
	if err != nil {
		return NFSDir{}, fmt.Errorf("make a folder to export: %w", err)
	}
	return dir, nil
}

// RemoveDir removes a folder with its content.
func (n *NFS) RemoveDir(dir NFSDir) error { return os.RemoveAll(dir.Path) }

func (n *NFS) close(ctx context.Context) error {
	if n == nil {
		return nil
	}
	return n.sandbox.close(ctx)
}
