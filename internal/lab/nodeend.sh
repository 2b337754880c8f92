# Removes what the end of a node's processes leaves: loop devices that kubelet made for raw block volumes, and control groups.
# Arguments: the lab's folder, and the node's.
group=virtclaim-$(basename "$1") kubelet=$1/kubelet

# Without the node's mounts, no path tells whose such a device is. But it has the inode of the device that the pod has.
for link in "$kubelet"/pods/*/volumeDevices/*/*; do
	[ -b "$link" ] || continue
	below="$(stat --dereference --format %i "$link") $(mountpoint --fs-devno /dev)"
	losetup --list --noheadings --output NAME,BACK-INO,BACK-MAJ:MIN | while read -r device inode system; do
		if [ "$inode $system" = "$below" ]; then losetup --detach "$device"; fi
	done
done
# Its mounts stay in host-a otherwise. Root's files would stay, too.
umount --recursive --lazy /var/lib/kubelet || true
if [ -n "${SUDO_UID-}" ]; then chown -R "$SUDO_UID:$SUDO_GID" "$kubelet"; fi

# The kernel may still be removing the killed processes.
for try in {1..100}; do
	left=
	for top in "/sys/fs/cgroup/$group" "/sys/fs/cgroup/"*"/$group"; do
		if [ -d "$top" ] && ! find "$top" -depth -type d -exec rmdir {} + 2>/dev/null; then left=yes; fi
	done
	if [ -z "$left" ]; then break; fi
	sleep 0.05
done
