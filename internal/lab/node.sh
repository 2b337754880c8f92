# Sets up the mounts, the network and the control groups of a node, in its namespaces (see node.go), which it keeps.
# Arguments: the node's folder, its address with the length of the prefix, and the name of its control groups.
set -eu
home=$1 address=$2 group=$3

mount -t tmpfs tmpfs /run
mkdir /run/lock /run/netns
# kubelet sets these for the whole machine, unless they are set.
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
	file=$home/$(basename "${setting%=*}")
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/${setting%=*}"
done

# Pods are on the same bridge as the link to the machine, so that no routes are needed. Its own hardware address keeps it from changing
# with each pod.
ip link set lo up
ip link add cni0 address 02:00:00:00:00:02 type bridge
ip address add "$address" dev cni0
ip link set cni0 up
ip link set eth0 master cni0 up

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	for controller in cpuset cpu io memory hugetlb pids; do
		echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true # kubelet says which one it misses
	done
	mkdir "/sys/fs/cgroup/$group"
else
	for controller in /sys/fs/cgroup/*/; do mkdir -p "$controller$group"; done
	for file in cpuset.cpus cpuset.mems; do
		cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$group/$file"
	done
fi

touch "$home/ready"
exec sleep infinity
