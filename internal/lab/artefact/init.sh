#!/bin/busybox sh
# The whole system of the lab's guest. It tells on the first serial port, one
# line for each fact, what it sees and does; the package comment has the lines.
# BusyBox's shell runs its own tools without PATH, as soon as /proc is there.

/bin/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo -onlcr
dmesg -n 1 # the kernel's messages would cut our lines in two

# param NAME: the values of the kernel parameter virtclaim.NAME, one a line.
param() {
	for word in $(cat /proc/cmdline); do
		case $word in virtclaim.$1=*) echo "${word#*=}" ;; esac
	done
}

disks() {
	ls /sys/block | grep -E '^[sv]d'
}

# SCSI disks come when their bus has been scanned, which insmod doesn't wait for.
wait_for_disks() {
	tries=200
	while [ "$(disks | wc -l)" -lt "$1" ] && [ $tries -gt 0 ]; do
		usleep 50000
		tries=$((tries - 1))
	done
}

# serial DISK: virtio has a file for it, SCSI and SATA a page with 4 bytes of header.
serial() {
	serial=$({
		cat "/sys/block/$1/serial" || tail -c +5 "/sys/block/$1/device/vpd_pg80"
	} 2>/dev/null | tr -d '\0' | sed 's/^ *//; s/ *$//; s/ /_/g')
	echo "${serial:--}"
}

report() {
	first=$(dd if="/dev/$1" bs=32 count=1 2>/dev/null | tr -c '\040-\176' .)
	echo "DISK $1 bytes=$(($(cat "/sys/block/$1/size") * 512)) ro=$(cat "/sys/block/$1/ro")" \
		"serial=$(serial "$1") first=$first"
}

# write DISK TEXT: the answer is what the disk, not the cache, has afterwards.
write() {
	if [ ! -b "/dev/$1" ]; then
		echo "FAILED $1 no such disk"
		return
	fi
	if ! error=$(printf %s "$2" | dd of="/dev/$1" bs=4096 seek=1 conv=notrunc,fsync 2>&1); then
		echo "FAILED $1 $(echo "$error" | head -n 1)"
		return
	fi
	blockdev --flushbufs "/dev/$1"
	if [ "$(dd if="/dev/$1" bs=4096 skip=1 count=1 2>/dev/null | head -c ${#2})" = "$2" ]; then
		echo "WROTE $1 offset=4096 text=$2"
	else
		echo "FAILED $1 reads back other bytes"
	fi
}

power_off() {
	stty -echo # returns when the last line has left the serial port
	exec /sbin/power-off
}

echo # the firmware left its last line open
echo "BOOT id=$(cat /proc/sys/kernel/random/boot_id)"
for module in /modules/*.ko; do insmod "$module"; done
acpid -l /dev/null
wait_for_disks "$(param disks | grep . || echo 0)"
for disk in $(disks); do report "$disk"; done
for order in $(param write); do write "${order%%:*}" "${order#*:}"; done
if [ -n "$(param run)" ]; then
	param run | base64 -d >/run.sh
	sh /run.sh
	echo "RAN rc=$?"
fi
echo READY
[ "$(param end)" = off ] && power_off

# Each command has a shell of its own: an error in it must not end process 1.
while :; do
	while read -r command; do
		(eval "$command")
		echo "RC=$?"
	done
	sleep 1 # the port hung up
done
