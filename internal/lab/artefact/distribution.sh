#!/bin/bash
# distribution.sh FOLDER: writes FOLDER/debian.qcow2, Debian with cloud-init and a guest agent, as Debian's own cloud images are: it boots
# with BIOS, its root file system is grown to the disk, and its console is on the first serial port. Neither mounts nor loop devices are needed.
set -euo pipefail
cd "$1"
export SOURCE_DATE_EPOCH=1700000000 E2FSPROGS_FAKE_TIME=1700000000 MTOOLS_SKIP_CHECK=1
PATH=$PATH:/usr/sbin:/sbin
boot=96 size=1280 # MiB
trap 'rm -rf root fs esp syslinux.cfg disk' EXIT

packages=linux-image-cloud-amd64,initramfs-tools,zstd,kmod,systemd-sysv,systemd-resolved,udev,dbus,iproute2,netbase
packages+=,cloud-init,cloud-guest-utils,fdisk,e2fsprogs,qemu-guest-agent,openssh-server,sudo
mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
	--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/i18n/*' \
	bookworm root

echo 'LABEL=root / ext4 rw,discard,errors=remount-ro 0 1' >root/etc/fstab
echo localhost >root/etc/hostname
echo '127.0.0.1 localhost' >root/etc/hosts
: >root/etc/machine-id # the first boot makes one, and host keys
rm -rf root/etc/ssh/ssh_host_* root/var/lib/dbus/machine-id root/var/cache/apt/* root/var/lib/apt/lists/*
chroot root systemctl --quiet enable systemd-networkd.service systemd-resolved.service
# Without a data source it would look for those of clouds, which takes minutes. A locale needs a package that is not there.
printf 'datasource_list: [NoCloud, None]\nlocale: false\n' >root/etc/cloud/cloud.cfg.d/90-local.cfg

mke2fs -q -t ext4 -L root -E lazy_itable_init=1 -d root fs $((size - boot - 2))M
mkfs.vfat -C -n BOOT --invariant esp $((boot * 1024)) >/dev/null
cat >syslinux.cfg <<-'END'
	SERIAL 0 115200
	DEFAULT debian
	LABEL debian
	 LINUX /vmlinuz
	 INITRD /initrd
	 APPEND root=LABEL=root ro console=tty0 console=ttyS0,115200
END
mmd -i esp ::/syslinux
mcopy -i esp root/boot/vmlinuz-* ::/vmlinuz
mcopy -i esp root/boot/initrd.img-* ::/initrd
mcopy -i esp /usr/lib/syslinux/modules/bios/ldlinux.c32 syslinux.cfg ::/syslinux/
syslinux --install --directory /syslinux esp

# The root file system is the last partition, so that the guest can grow it.
truncate -s ${size}M disk
sfdisk --quiet disk <<-END
	label: gpt
	start=2048, size=$((boot * 2048)), type=uefi, attrs=LegacyBIOSBootable
	size=$(((size - boot - 2) * 2048)), type=linux
END
dd if=/usr/lib/syslinux/mbr/gptmbr.bin of=disk conv=notrunc bs=440 count=1 status=none
dd if=esp of=disk bs=1M seek=1 conv=notrunc,sparse status=none
dd if=fs of=disk bs=1M seek=$((boot + 1)) conv=notrunc,sparse status=none
qemu-img convert -f raw -O qcow2 disk debian.qcow2
chmod 644 debian.qcow2
