# The first process of a sandbox (see sandbox.go): binds folders over others, then runs the commands that come in.
# Arguments: the lab's folder, a host name, a folder, and any number of pairs of a folder and where it is bound.
set -eu
lab=$1 name=$2 home=$3
shift 3

# The lab's folder is in use as long as this process lives, also when the lab itself is dead.
exec 7<"$lab"
flock --shared 7
# Mount points that the machine lacks are listed in a file. Only its last sandbox may remove them: removing one unmounts
# what others have there.
exec 8</run
flock --shared 8
made=/run/virtclaim-lab.made

printf %s "$name" >/proc/sys/kernel/hostname
bind() {
	if [ ! -d "$2" ]; then
		mkdir -p "$2"
		echo "$2" >>"$made"
	fi
	mount --bind "$1" "$2"
}
if [ -e "$home/start.sh" ]; then . "$home/start.sh"; fi
mount -t proc -o nosuid,nodev,noexec proc /proc
while (($#)); do
	bind "$1" "$2"
	shift 2
done

# Each command runs in the background, so that the end of the input is seen while one runs. An answer is at most 3,000
# bytes: a pipe takes that much in one piece.
while IFS= read -r -d '' id && IFS= read -r -d '' command; do
	{
		code=0
		output=$(
			eval "$command" 2>&1 | tail -c 3000
			exit "${PIPESTATUS[0]}"
		) || code=$?
		printf '%s\0%s\0%s\0' "$id" "$code" "$output"
	} </dev/null 7<&- 8<&- &
done

# The lab is gone, or wants us gone.
kill -KILL -1 2>/dev/null || true
if [ -e "$home/end.sh" ]; then bash "$home/end.sh" "$lab" "$home" || true; fi
if flock --exclusive --nonblock 8 && [ -e "$made" ]; then
	while read -r point; do
		umount --recursive --lazy "$point" 2>/dev/null || true
		rmdir "$point" 2>/dev/null || true
	done <"$made"
	rm "$made"
fi
if [ -n "${SUDO_UID-}" ]; then chown -R "$SUDO_UID:$SUDO_GID" "$home"; fi
