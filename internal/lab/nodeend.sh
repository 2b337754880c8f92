# Removes what the end of a node's processes leaves: loop devices that kubelet made for raw block volumes, and control groups.
# Arguments: the lab's folder, and the node's.
group=virtclaim-$(basename "$1") mounts=$2/mounts

# Only the node's own mounts give the paths of the devices' files.
[ ! -s "$mounts" ] || nsenter --mount="$mounts" losetup --list --noheadings --output NAME,BACK-FILE |
	while read -r device file; do
		case $file in /var/lib/kubelet/*) losetup --detach "$device" ;; esac
	done

# The kernel may still be removing killed processes from the groups.
for try in {1..100}; do
	left=
	for top in "/sys/fs/cgroup/$group" "/sys/fs/cgroup/"*"/$group"; do
		if [ -d "$top" ] && ! find "$top" -depth -type d -exec rmdir {} +; then left=yes; fi
	done
	if [ -z "$left" ]; then break; fi
	sleep 0.05
done 2>/dev/null
