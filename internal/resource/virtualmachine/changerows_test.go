package virtualmachine_test

// changes are all attributes. In what they say of a machine, spare and other are volumes of its own, KERNEL and INITRD are
// files of the host.
var changes = []change{
	{attribute: "host", first: `host = "host-a"`, second: `host = "host-b"`, change: replaced, removal: never},
	{attribute: "name", first: `name = "old"`, second: `name = "new"`, change: replaced, removal: never},
	{
		attribute: "memory", first: `memory = "48Mi"`, second: `memory = "40Mi"`, change: atStart, removal: never,
	},
	{
		attribute: "cpu.vcpus", first: `cpu = { vcpus = 2 }`, second: `cpu = { vcpus = 3 }`, change: atStart, removal: atStart,
		more: "without `cpu` it is one",
	},
	{
		attribute: "machine.type", first: `machine = { type = "pc", domain_type = "qemu" }`, second: `machine = { type = "q35", domain_type = "qemu" }`,
		without: `machine = { domain_type = "qemu" }`, change: replaced, removal: ours, more: "taken out, it stays as it is",
	},
	{
		attribute: "machine.arch", first: `machine = { arch = "x86_64", domain_type = "qemu" }`, second: `machine = { arch = "i686", domain_type = "qemu" }`,
		without: `machine = { domain_type = "qemu" }`, change: replaced, removal: ours, more: "taken out, it stays as it is",
	},
	{
		attribute: "boot.kernel", first: `boot = { kernel = "KERNEL" }`, second: `boot = { kernel = "INITRD" }`, change: atStart, removal: atStart,
	},
	{
		attribute: "boot.initrd", first: `boot = { kernel = "KERNEL", initrd = "INITRD" }`, second: `boot = { kernel = "KERNEL", initrd = "KERNEL" }`,
		without: `boot = { kernel = "KERNEL" }`, change: atStart, removal: atStart,
	},
	{
		attribute: "boot.cmdline", first: `boot = { kernel = "KERNEL", cmdline = "a" }`, second: `boot = { kernel = "KERNEL", cmdline = "b" }`,
		without: `boot = { kernel = "KERNEL" }`, change: atStart, removal: atStart,
	},
	{
		attribute: "serial.log_file", first: `serial = { log_file = "/var/log/libvirt/one.log" }`,
		second: `serial = { log_file = "/var/log/libvirt/two.log" }`, without: `serial = {}`, change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.volume", first: `disks = { data = { volume = spare } }`, second: `disks = { data = { volume = other } }`, change: live,
		removal: live, boots: true, more: "on virtio, scsi and usb; other buses and what the machine boots from at the next start",
	},
	{
		attribute: "disks.*.bus", first: `disks = { data = { volume = spare }, more = { volume = other, bus = "scsi" } }`,
		second:  `disks = { data = { volume = spare, bus = "scsi" }, more = { volume = other, bus = "scsi" } }`,
		without: `disks = { data = { volume = spare }, more = { volume = other, bus = "scsi" } }`, change: live, removal: live, boots: true,
		more: "between virtio, scsi (where the machine started with a disk there) and usb; other buses at the next start",
	},
	{
		attribute: "disks.*.device", first: `disks = { data = { volume = spare, device = "cdrom" } }`, second: `disks = { data = { volume = spare } }`,
		change: atStart, removal: never, more: "taken out, it is a disk",
	},
	{
		attribute: "disks.*.boot_order", first: `disks = { data = { volume = spare, boot_order = 1 } }`,
		second: `disks = { data = { volume = spare, boot_order = 2 } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.ephemeral", first: `disks = { data = { volume = spare, ephemeral = true } }`,
		second: `disks = { data = { volume = spare, ephemeral = false } }`, change: atStart, removal: never, more: "taken out, it is false",
	},
	{
		attribute: "disks.*.target", first: `disks = { data = { volume = spare, target = "vdb" } }`,
		second: `disks = { data = { volume = spare, target = "vdc" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: ours, more: "taken out, it stays as it is",
	},
	{
		attribute: "disks.*.serial", first: `disks = { data = { volume = spare, serial = "one" } }`,
		second: `disks = { data = { volume = spare, serial = "two" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.cache", first: `disks = { data = { volume = spare, cache = "none" } }`,
		second: `disks = { data = { volume = spare, cache = "directsync" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.io", first: `disks = { data = { volume = spare, io = "threads" } }`,
		second: `disks = { data = { volume = spare, io = "io_uring" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.discard", first: `disks = { data = { volume = spare, discard = "ignore" } }`,
		second: `disks = { data = { volume = spare, discard = "unmap" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.error_policy", first: `disks = { data = { volume = spare, error_policy = "report" } }`,
		second: `disks = { data = { volume = spare, error_policy = "ignore" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.iothread", first: `disks = { data = { volume = spare, iothread = 1 } }`,
		second: `disks = { data = { volume = spare, iothread = 2 } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.logical_block_size", first: `disks = { data = { volume = spare, logical_block_size = 512 } }`,
		second: `disks = { data = { volume = spare, logical_block_size = 4096 } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.physical_block_size", first: `disks = { data = { volume = spare, physical_block_size = 512 } }`,
		second: `disks = { data = { volume = spare, physical_block_size = 4096 } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.read_only", first: `disks = { data = { volume = spare, read_only = true } }`,
		second: `disks = { data = { volume = spare, read_only = false } }`, change: atStart, removal: never, more: "taken out, it is false",
	},
	{
		attribute: "machine.domain_type", first: `machine = { type = "q35", domain_type = "qemu" }`, second: `machine = { type = "q35", domain_type = "qemu" }`,
		without: `machine = { type = "q35" }`, change: ours, removal: ours, more: "another one is another machine; taken out, it stays as it is",
	},
	{
		attribute: "running", first: `running = true`, second: `running = false`, change: stopped, removal: started, more: "true by default",
	},
	{attribute: "force_stop", first: `force_stop = false`, second: `force_stop = true`, change: ours, removal: ours},
	{attribute: "timeouts.create", first: `timeouts = { create = "5m" }`, second: `timeouts = { create = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.read", first: `timeouts = { read = "5m" }`, second: `timeouts = { read = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.update", first: `timeouts = { update = "5m" }`, second: `timeouts = { update = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.delete", first: `timeouts = { delete = "5m" }`, second: `timeouts = { delete = "6m" }`, change: ours, removal: ours},
}
