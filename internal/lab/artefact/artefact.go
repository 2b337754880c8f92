// Package artefact builds the parts of the lab that take too long to build for
// each run: the control plane, the guest and what a node needs. Each is built
// once, into a cache folder, and shared by all processes that use the same
// folder.
//
// # The guest
//
// It needs 128 MiB, an x86-64 machine and the kernel parameters of its Image, and
// prints to the first serial port, one line for each fact:
//
//	BOOT id=<random, another one after each boot>
//	DISK <name> bytes=<size> ro=<0|1> serial=<serial or -> first=<first 32 bytes>
//	CDROM <name> bytes=<size> ro=<0|1> label=<label or ->, or: CDROM <name> empty
//	NIC <name> mac=<MAC address> link=<0|1> address=<IP addresses with commas, or ->
//	FILE <name> <path> <content in Base64>
//	WROTE <name> offset=4096 text=<text>
//	FAILED <name> <reason>
//	RAN rc=<exit status>
//	READY
//	RC=<exit status>
//
// Bytes that are not printable ASCII are printed as dots, spaces in a serial or
// a label as underscores. Further kernel parameters (2,048 bytes in all) are its
// commands:
//
//	virtclaim.disks=<n>             wait until n disks exist, a minute at most
//	virtclaim.cdroms=<n>            wait until n CD-ROM drives exist, a minute at most
//	virtclaim.nics=<n>              wait until n network interfaces exist, a minute at most, and bring them up
//	virtclaim.dhcp=<name>           request an address by DHCP; may be repeated
//	virtclaim.agent=<port>          answer what virtclaim asks at a virtio port, such as vport0p1, as QEMU's agent does
//	virtclaim.refuse=<command>      one that the agent does not have, such as guest-file-open; may be repeated
//	virtclaim.read=<name>           print the FILEs of an ISO image in a CD-ROM drive; may be repeated
//	virtclaim.write=<name>:<text>   write the text to the disk, at byte 4096; may be repeated
//	virtclaim.load=<module>         load a driver that is not loaded by default; may be repeated
//	virtclaim.run=<base64>          run a shell script with its output on the serial port
//	virtclaim.end=off               power off after READY
//
// After READY it runs each line from the serial port (4,095 bytes at most) as
// a shell command and answers with RC=. Commands and scripts can use the
// functions of init.sh: load <module>; report <disk>, report_nic <name>,
// report_cdrom <name> and read_cdrom <name> print such lines again. The latter
// two detect a changed medium. dhcp <name> requests an address again, also for
// a network interface that was added after the boot. The power button shuts the
// guest down at once. The names of devices are Linux' own, in the order of
// discovery: vda, vdb, sda, sr0, eth0.
package artefact
