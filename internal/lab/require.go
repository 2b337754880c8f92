package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// programs are the programs that the lab runs, and those that build its parts.
var programs = []string{
	"bash", "flock", "mount", "umount", "losetup", "unshare", "nsenter", "ip",
	"virsh", "libvirtd", "qemu-system-x86_64", "qemu-img", "qemu-nbd", "tgtd", "tgtadm",
	"monmaptool", "ceph-mon", "ceph-osd", "ceph", "rbd", "rpcbind", "rpcinfo", "ganesha.nfsd", "glusterd", "gluster",
	"docker-registry", "dnsmasq", "iptables", "sshd", "ssh", "ssh-keygen", "ssh-agent", "nc",
	"go", "apt-get", "apt-cache", "dpkg",
}

// systemFolders have programs for root, which the PATH of other users may lack.
const systemFolders = "/usr/local/sbin:/usr/sbin:/sbin"

// require checks that the machine can run a lab.
func require(ctx context.Context) error {
	if os.Geteuid() != 0 {
		if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
			return fmt.Errorf("the lab needs root, for mounts and process ids of its own: run it as root, "+
				"or allow sudo without a password (sudo -n true: %w)", err)
		}
	}
	if missing := missingPrograms(programs, os.Getenv("PATH")+":"+systemFolders); len(missing) > 0 {
		return fmt.Errorf("the lab needs programs that this machine does not have: %s. Run: make setup", strings.Join(missing, ", "))
	}
	return nil
}

func missingPrograms(names []string, path string) (missing []string) {
	for _, name := range names {
		if !onPath(name, path) {
			missing = append(missing, name)
		}
	}
	return missing
}

func onPath(name, path string) bool {
	for folder := range strings.SplitSeq(path, ":") {
		if _, err := exec.LookPath(folder + "/" + name); err == nil && folder != "" {
			return true
		}
	}
	return false
}
