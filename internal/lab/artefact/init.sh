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

# load MODULE: one of those in /more, after what it needs. What is loaded already does no harm.
load() {
	for module in $(cat "/more/$1"); do insmod "/more/$module.ko" 2>/dev/null; done
}

disks() {
	ls /sys/block | grep -E '^[sv]d'
}

# CD-ROM drives, with or without a medium.
cdroms() {
	ls /sys/block | grep -E '^sr'
}

nics() {
	ls /sys/class/net | grep -v '^lo$'
}

ports() {
	ls /dev | grep '^vport'
}

# wait_for LIST N: SCSI disks and CD-ROMs come when their bus has been scanned, which insmod doesn't wait for.
wait_for() {
	tries=1200
	while [ "$($1 | wc -l)" -lt "$2" ] && [ $tries -gt 0 ]; do
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

# bytes DISK: the size of one that may be unplugged at any moment.
bytes() {
	sectors=$(cat "/sys/block/$1/size" 2>/dev/null)
	echo $((${sectors:-0} * 512))
}

report() {
	first=$(dd if="/dev/$1" bs=32 count=1 2>/dev/null | tr -c '\040-\176' .)
	echo "DISK $1 bytes=$(bytes "$1") ro=$(cat "/sys/block/$1/ro")" \
		"serial=$(serial "$1") first=$first"
}

# report_nic NIC: its link shows while it is switched on.
report_nic() {
	if [ ! -d "/sys/class/net/$1" ]; then
		echo "FAILED $1 no such network interface"
		return
	fi
	address=$(ip -o -4 address show dev "$1" | sed 's/.* inet //; s/ .*//' | tr '\n' , | sed 's/,$//')
	echo "NIC $1 mac=$(cat "/sys/class/net/$1/address") link=$(cat "/sys/class/net/$1/carrier") address=${address:--}"
}

# dhcp NIC: switches it on, gives the address up that it has, and asks for one, ten seconds at most.
dhcp() {
	printf '#!/bin/sh\n[ "$1" != bound ] || ip address add "$ip/$mask" dev "$interface"\n' >/dhcp.sh
	chmod +x /dhcp.sh
	ip address flush dev "$1"
	ip link set "$1" up
	udhcpc -i "$1" -f -q -n -t 10 -T 1 -s /dhcp.sh >/dev/null 2>&1 || echo "FAILED $1 no address"
	report_nic "$1"
}

# answer: what QEMU's agent would say to each question that comes in, as far as the lab asks; its own is no part of BusyBox.
# It makes few processes: libvirt waits only some seconds. As long as nobody is at the other end of the port it is at its end:
# libvirt comes when the guest has opened it.
answer() {
	while :; do
		while read -r question; do
			id=${question##*'"id":'}
			case $question in
			*guest-sync-delimited*) printf '\377{"return":%s}\n' "${id%%'}'*}" ;;
			*guest-sync*) printf '{"return":%s}\n' "${id%%'}'*}" ;;
			*guest-network-get-interfaces*) echo "{\"return\":[$(networks)]}" ;;
			*guest-info*) echo "{\"return\":{\"version\":\"7.2.0\",\"supported_commands\":[$(commands)]}}" ;;
			*) reply ;;
			esac
		done
		usleep 100000
	done
}

# reply: the answers that virtclaim.refuse may refuse. Where there is /hangs, a shutdown has no end.
reply() {
	name=${question#*'"execute":"'}
	name=${name%%'"'*}
	case "$refused " in *" $name "*) name=refused ;; esac
	case $name in
	guest-shutdown) [ -e /hangs ] || /sbin/power-off ;;
	guest-file-open) [ -e $result ] && echo '{"return":1}' || failed "failed to open file '$result': No such file or directory" ;;
	guest-file-read) echo "{\"return\":{\"count\":$(wc -c <$result),\"buf-b64\":\"$(base64 -w 0 $result)\",\"eof\":true}}" ;;
	guest-file-close) echo '{"return":{}}' ;;
	guest-get-vcpus) echo "{\"return\":[$(vcpus)]}" ;;
	guest-set-vcpus) online ;;
	*) echo '{"error":{"class":"CommandNotFound","desc":"the guest of the lab has no such command"}}' ;;
	esac
}

result=/run/cloud-init/result.json

failed() {
	echo "{\"error\":{\"class\":\"GenericError\",\"desc\":\"$1\"}}"
}

# commands: what the agent says of its commands, as far as virtclaim looks at them.
commands() {
	all=
	for name in guest-info guest-file-open guest-file-read guest-file-close; do
		case "$refused " in *" $name "*) enabled=false ;; *) enabled=true ;; esac
		all=$all,{\"name\":\"$name\",\"enabled\":$enabled,\"success-response\":true}
	done
	echo "${all#,}"
}

# vcpus: what the agent says of the processors. The first can't be put offline.
vcpus() {
	all=
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		case $(cat "$cpu/online" 2>/dev/null) in 0) online=false ;; *) online=true ;; esac
		all=$all,{\"logical-id\":${cpu##*/cpu},\"online\":$online,\"can-offline\":true}
	done
	echo "${all#,}"
}

# online: puts the processors of the question online, and says how many these are.
online() {
	count=0
	for id in $(echo "$question" | grep -o '"logical-id":[0-9]*' | sed 's/.*://'); do
		echo 1 >"/sys/devices/system/cpu/cpu$id/online"
		count=$((count + 1))
	done
	echo "{\"return\":$count}"
}

# networks: what the agent says of the network interfaces.
networks() {
	all=
	for nic in /sys/class/net/eth*; do
		read -r mac <"$nic/address"
		addresses=
		for address in $(ip -o -4 address show dev "${nic##*/}" | sed 's/.* inet \([^ ]*\).*/\1/'); do
			addresses=$addresses,{\"ip-address-type\":\"ipv4\",\"ip-address\":\"${address%/*}\",\"prefix\":${address#*/}}
		done
		all=$all,{\"name\":\"${nic##*/}\",\"hardware-address\":\"$mac\",\"ip-addresses\":[${addresses#,}]}
	done
	echo "${all#,}"
}

# medium CDROM: sees to it that the kernel knows the medium that is in the drive now. The first that looks after a change
# of the medium is told of the change instead.
medium() {
	tries=20
	until head -c 1 "/dev/$1" >/dev/null 2>&1 || [ $tries -eq 0 ]; do
		usleep 100000
		tries=$((tries - 1))
	done
	[ $tries -gt 0 ]
}

# read_only DISK: 0 if it can be opened for writing.
read_only() {
	(: <>"/dev/$1") 2>/dev/null
	echo $?
}

# report_cdrom CDROM: an ISO image begins with 32 KiB of zeros, its label tells more. Whether it can be written shows when
# somebody tries to: Linux says ro=0 of all drives.
report_cdrom() {
	if ! medium "$1"; then
		echo "CDROM $1 empty"
		return
	fi
	label=$(dd if="/dev/$1" bs=1 skip=32808 count=32 2>/dev/null | tr -c '\040-\176' . | sed 's/ *$//; s/ /_/g')
	echo "CDROM $1 bytes=$(bytes "$1") ro=$(read_only "$1") label=${label:--}"
}

# read_cdrom CDROM: the files of an ISO image, in Base64 as they can have any bytes.
read_cdrom() {
	if ! medium "$1"; then
		echo "FAILED $1 no medium"
		return 1
	fi
	mkdir -p /medium
	if ! error=$(mount -t iso9660 -o ro "/dev/$1" /medium 2>&1); then
		echo "FAILED $1 $(echo "$error" | head -n 1)"
		return 1
	fi
	(cd /medium && find . -type f | sort | while read -r file; do
		echo "FILE $1 ${file#./} $(base64 -w 0 "$file")"
	done)
	umount /medium
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
for module in $(param load); do load "$module"; done
wait_for disks "$(param disks | grep . || echo 0)"
wait_for cdroms "$(param cdroms | grep . || echo 0)"
wait_for nics "$(param nics | grep . || echo 0)"
for disk in $(disks); do report "$disk"; done
for cdrom in $(cdroms); do report_cdrom "$cdrom"; done
for nic in $([ -z "$(param nics)" ] || nics); do
	ip link set "$nic" up
done
for nic in $(param dhcp); do dhcp "$nic"; done
wait_for ports "$(param agent | wc -l)" # or the shell would make a file of that name
refused=$(param refuse | sed 's/^/ /' | tr -d '\n')
for port in $(param agent); do answer <>"/dev/$port" >&0 & done
for cdrom in $(param read); do read_cdrom "$cdrom"; done
for order in $(param write); do write "${order%%:*}" "${order#*:}"; done
if [ -n "$(param run)" ]; then
	param run | base64 -d >/run.sh
	(. /run.sh) # so it has the functions above
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
