#!/bin/bash
# Installs what the lab and the tests need, as far as it is missing. Says nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
tofu=v1.12.6

say() { echo "setup: $*"; }
fail() { say "$*" >&2; exit 1; }
as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

# Each needed program or file, and the Debian package that has it.
needs="
libvirtd libvirt-daemon
virtlogd libvirt-daemon
/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so libvirt-daemon-driver-qemu
virsh libvirt-clients
qemu-system-x86_64 qemu-system-x86
/usr/share/qemu/vhost-user/*virtiofsd.json qemu-system-common
qemu-img qemu-utils
qemu-nbd qemu-utils
e2fsck e2fsprogs
/usr/share/qemu/firmware/*-edk2-x86_64.json ovmf
swtpm swtpm
swtpm_setup swtpm-tools
/usr/lib/*/qemu/block-iscsi.so qemu-block-extra
tgtd tgt
iscsi-test-cu libiscsi-bin
kubectl kubernetes-client
monmaptool ceph-base
ceph-mon ceph-mon
ceph-osd ceph-osd
ceph ceph-common
rbd ceph-common
rpcbind rpcbind
ganesha.nfsd nfs-ganesha
/usr/lib/*/ganesha/libfsalvfs.so nfs-ganesha-vfs
glusterd glusterfs-server
gluster glusterfs-cli
docker-registry docker-registry
dnsmasq dnsmasq-base
iptables iptables
sshd openssh-server
ssh openssh-client
nc netcat-openbsd
unshare util-linux
nsenter util-linux
mmdebstrap mmdebstrap
syslinux syslinux
/usr/lib/syslinux/modules/bios/ldlinux.c32 syslinux-common
mcopy mtools
sfdisk fdisk
mkfs.vfat dosfstools
losetup mount
ip iproute2
gcc gcc
/usr/include/stdlib.h libc6-dev
git git
gpg gpg
gpg-agent gpg-agent
unzip unzip
/usr/bin/time time
dpkg dpkg
apt-get apt
"
# What of these packages systemd would start at the next boot.
declare -A units=(
	[libvirt-daemon]="libvirtd.service libvirtd.socket"
	[tgt]=tgt.service
	[ceph-mon]=ceph-mon.target
	[ceph-osd]=ceph-osd.target
	[rpcbind]="rpcbind.socket rpcbind.service"
	[nfs-ganesha]=nfs-ganesha.service
	[glusterfs-server]=glusterd.service
	[docker-registry]=docker-registry.service
	[openssh-server]="ssh.service ssh.socket"
)

missing=()
while read -r need package; do
	case $need in
	"") continue ;;
	/*) compgen -G "$need" >/dev/null && continue ;;
	*) command -v "$need" >/dev/null && continue ;;
	esac
	missing+=("$package")
done <<<"$needs"

command -v go >/dev/null || fail "Go is missing: install it from https://go.dev/dl/ and put it on the PATH"

if ((${#missing[@]})); then
	command -v apt-get >/dev/null || fail "this is not a Debian or Ubuntu machine, so install by hand what is missing;" \
		"Debian calls the packages: ${missing[*]}"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	as_root apt-get update -qq -o Acquire::Retries=3
	(
		# No service of the packages may start, now or later: the lab starts its own.
		policy=/usr/sbin/policy-rc.d
		if [ ! -e $policy ]; then
			trap 'as_root rm $policy' EXIT
			printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
			as_root chmod +x $policy
		fi
		as_root apt-get install -qq -y -o Acquire::Retries=3 --no-install-recommends "${missing[@]}"
	)
	if [ -d /run/systemd/system ]; then
		for package in "${missing[@]}"; do
			for unit in ${units[$package]-}; do as_root systemctl disable --quiet "$unit" || true; done
		done
	fi
fi

# Debian's libvirtd looks this user up at its start, even when it is told to use another one.
if ! getent passwd libvirt-qemu >/dev/null; then
	say "adding the system user libvirt-qemu"
	as_root useradd --system --user-group --shell /usr/sbin/nologin --home-dir /var/lib/libvirt libvirt-qemu
fi

if ! command -v terraform tofu >/dev/null && [ ! -x .lab/bin/tofu ]; then
	say "building OpenTofu ${tofu#v}, as there is neither terraform nor tofu (4 minutes)"
	mkdir -p .lab/bin
	part=$PWD/.lab/bin/.tofu-$$
	trap 'rm -f "$part"' EXIT
	source=$(go mod download -json "github.com/opentofu/opentofu@$tofu" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
	(cd "$source" && go build -ldflags='-s -w -X github.com/opentofu/opentofu/version.dev=no' -o "$part" ./cmd/tofu)
	mv "$part" .lab/bin/tofu
fi
