package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sshdConfiguration is the configuration of both servers. They accept root by its key, and no passwords.
const sshdConfiguration = `ListenAddress %[2]s:22
HostKey %[1]s/%[3]s
AuthorizedKeysFile %[1]s/key.pub
AuthenticationMethods publickey
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
%[4]s
`

// sshConfiguration is a client's. The host is on loopback, that of the jump host.
const sshConfiguration = `Host jump
  HostName %[1]s
Host host-d
  HostName 127.0.0.1
  HostKeyAlias host-d
  ProxyJump jump
Host *
  User root
  UserKnownHostsFile %[2]s
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
`

// SSH is a client's access to host-d, which is behind a jump host.
type SSH struct {
	// Config is a configuration file, which names no key, and KnownHosts the file of both servers' keys.
	Config, KnownHosts string
	// Key is the file of the key that both servers accept; it has a passphrase.
	Key, Passphrase string

	dir string
}

func newSSH(dir string) SSH {
	in := func(name string) string { return filepath.Join(dir, name) }
	return SSH{Config: in("config"), KnownHosts: in("known_hosts"), Key: in("key"), Passphrase: "correct horse", dir: dir}
}

// startSSH starts the host's server, and the jump host's, which only forwards clients to it.
func (r *Remote) startSSH(ctx context.Context) error {
	// libvirt's own programs use no other socket, and sshd requires that root's password is not locked.
	err := errors.Join(os.Mkdir(r.SSH.dir, 0o700), os.Symlink(r.socket, filepath.Join(r.Dir, "run", "libvirt-sock")))
	if err == nil {
		err = r.SSH.writeFiles(ctx, r.Address)
	}
	if err == nil {
		err = r.sandbox.run(ctx, "mount --bind "+quote(filepath.Join(r.SSH.dir, "shadow"))+" /etc/shadow")
	}
	if err != nil {
		return fmt.Errorf("prepare ssh: %w", err)
	}
	for _, server := range []struct{ name, address, more string }{
		{"jump", r.Address, "PermitOpen 127.0.0.1:22\nForceCommand /bin/false"},
		{remoteHost, "127.0.0.1", "AllowTcpForwarding no\nAllowStreamLocalForwarding no"},
	} {
		file := filepath.Join(r.SSH.dir, server.name+".conf")
		text := fmt.Sprintf(sshdConfiguration, r.SSH.dir, server.address, server.name, server.more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		sshd := startDaemon(r.sandbox, r.SSH.dir, "sshd-"+server.name, r.network.enter("$(command -v sshd) -D -e -f "+quote(file)))
		listens := r.network.enter("bash -c " + quote("exec 3<>/dev/tcp/"+server.address+"/22"))
		if err := sshd.await(ctx, func(ctx context.Context) error { return r.sandbox.run(ctx, listens) }); err != nil {
			return fmt.Errorf("start the ssh server %s: %w", server.name, err)
		}
	}
	return nil
}

// writeFiles creates the keys, and the clients' configuration and known hosts.
func (s SSH) writeFiles(ctx context.Context, jump string) error {
	var known strings.Builder
	for _, server := range []struct{ name, knownAs string }{{"jump", jump}, {remoteHost, remoteHost}} {
		public, err := makeSSHKey(ctx, filepath.Join(s.dir, server.name), "")
		if err != nil {
			return err
		}
		known.WriteString(server.knownAs + " " + public)
	}
	_, err := makeSSHKey(ctx, s.Key, s.Passphrase)
	return errors.Join(err,
		os.WriteFile(s.KnownHosts, []byte(known.String()), 0o600),
		os.WriteFile(s.Config, fmt.Appendf(nil, sshConfiguration, jump, s.KnownHosts), 0o600),
		os.WriteFile(filepath.Join(s.dir, "shadow"), []byte("root:*:19000:0:99999:7:::\n"), 0o600))
}

// makeSSHKey creates a key, and returns its public half.
func makeSSHKey(ctx context.Context, file, passphrase string) (public string, err error) {
	out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a key for ssh: %w: %s", err, out)
	}
	text, err := os.ReadFile(file + ".pub")
	return string(text), err
}
