// Package artefact builds what the lab runs and what takes too long to build
// for each run: the control plane and the guest. Both are made once, into
// a cache folder, and shared by all processes that name the same folder.
//
// # The guest
//
// It needs 128 MiB, an x86-64 machine and the kernel parameters of its Image, and
// tells on the first serial port, one line for each fact:
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
// Bytes that are not printable ASCII show as dots, spaces in a serial or
// a label as underscores. Further kernel parameters (2,048 bytes in all) tell
// it what to do:
//
//	virtclaim.disks=<n>             wait until n disks are there, 10 s at most
//	virtclaim.cdroms=<n>            wait until n CD-ROM drives are there, 10 s at most
//	virtclaim.nics=<n>              wait until n network interfaces are there, 10 s at most, and switch them on
//	virtclaim.dhcp=<name>           ask for an address; may be repeated
//	virtclaim.agent=<port>          answer at a virtio port, such as vport0p1, as QEMU's agent does to questions for addresses
//	virtclaim.read=<name>           print the FILEs of an ISO image in a CD-ROM drive; may be repeated
//	virtclaim.write=<name>:<text>   write the text to the disk, at byte 4096; may be repeated
//	virtclaim.load=<module>         load a driver that is not loaded otherwise; may be repeated
//	virtclaim.run=<base64>          run a shell script, its output goes to the serial port
//	virtclaim.end=off               power off after READY
//
// After READY it runs each line that comes in on the serial port (4,095 bytes
// at most) as a shell command and answers with RC=. Commands and scripts can use
// what init.sh itself does: load <module>, report <disk>, report_nic <name>,
// report_cdrom <name> and read_cdrom <name> print such lines anew. The latter two
// notice that the medium has been changed. dhcp <name> asks for an address once
// more, and the network interface need not have been there at boot. The power
// button shuts the guest down at once. The names of devices are Linux' own, in the
// order of discovery: vda, vdb, sda, sr0, eth0.
package artefact
