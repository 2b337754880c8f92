# Makes the folder of kubelet's mounts, which host-a and the node share as a real node's processes do. A process keeps
# the mounts of this time, for the node to begin with: what host-a mounts later is its own. sandbox.sh sources this, while
# /proc is still the machine's.
mkdir -p "$lab/kubelet"
bind "$lab/kubelet" /var/lib/kubelet
mount --make-shared /var/lib/kubelet
read -r keeper < <(
	exec 7<&- 8<&-
	# shellcheck disable=SC2016 # the inner shell reads its own process id
	exec unshare --mount --propagation unchanged bash -c '
		read -r id _ </proc/self/stat
		echo "$id"
		exec sleep infinity >/dev/null'
)
echo "$keeper" >"$lab/kubelet.pid"
