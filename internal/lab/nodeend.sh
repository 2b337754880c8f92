# Removes what the end of a node's processes leaves: loop devices that kubelet made for raw block volumes, and control groups.
# Arguments: the lab's folder, and the node's.
group=virtclaim-$(basename "$1") home=$2

losetup --list --noheadings --output NAME,BACK-FILE | while read -r device file; do
	# Other nodes have the same paths, but not the same pods.
	own=$home/kubelet/${file#/var/lib/kubelet/}
	if [ "$file" != "${file#/var/lib/kubelet/}" ] && [ -e "$own" ]; then losetup --detach "$device"; fi
done

# The kernel may still be removing the killed processes.
for try in {1..100}; do
	left=
	for top in "/sys/fs/cgroup/$group" "/sys/fs/cgroup/"*"/$group"; do
		if [ -d "$top" ] && ! find "$top" -depth -type d -exec rmdir {} + 2>/dev/null; then left=yes; fi
	done
	if [ -z "$left" ]; then break; fi
	sleep 0.05
done
