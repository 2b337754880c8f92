package virtualmachine_test

// changes are all attributes. In their configurations spare and other are the machine's own volumes, and KERNEL and INITRD are files of the
// host.
var changes = []change{
	{
		attribute: "host", change: live, removal: never, proof: []string{"TestAccVirtualMachine_MovesLive"},
		more: "if its storage can be opened on both hosts; otherwise another machine, or refused, as the plan says",
	},
	{
		attribute: "name", first: `name = "old"`, second: `name = "new"`, change: replaced, removal: never,
		more: "a machine that is off, without UEFI, is renamed in place",
	},
	{
		attribute: "name_prefix", change: replaced, removal: never, proof: []string{"TestModel_HasOtherPrefix"},
		more: "a machine whose name begins with it keeps its name",
	},
	{
		attribute: "memory", first: `memory = "128Mi"` + "\n" + `max_memory = "136Mi"`, second: `memory = "120Mi"` + "\n" + `max_memory = "136Mi"`,
		change: live, removal: never, boots: true, more: "up to `max_memory`; beyond that at the next start",
	},
	{
		attribute: "cpu.vcpus", first: `cpu = { vcpus = 2, max_vcpus = 4 }`, second: `cpu = { vcpus = 3, max_vcpus = 4 }`, without: "",
		change: live, removal: atStart, more: "more of them up to `max_vcpus`, which the guest agent puts online; fewer, and beyond that, at the next start; without `cpu` it is one",
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
		attribute: "fw_cfg", first: `fw_cfg = { "opt/a" = "KERNEL" }`, second: `fw_cfg = { "opt/a" = "INITRD" }`, change: atStart, removal: atStart,
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
		second: `disks = { data = { volume = spare, target = "vdc" } }`, change: atStart, removal: never, more: "taken out, it stays as it is",
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
		attribute: "disks.*.detect_zeroes", first: `disks = { data = { volume = spare, detect_zeroes = "on" } }`,
		second: `disks = { data = { volume = spare, detect_zeroes = "off" } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.queues", first: `disks = { data = { volume = spare, queues = 2 } }`,
		second: `disks = { data = { volume = spare, queues = 3 } }`, without: `disks = { data = { volume = spare } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.vendor", first: `disks = { data = { volume = spare, bus = "scsi", vendor = "SEAGATE" } }`,
		second: `disks = { data = { volume = spare, bus = "scsi", vendor = "QEMU" } }`, without: `disks = { data = { volume = spare, bus = "scsi" } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.product", first: `disks = { data = { volume = spare, bus = "scsi", product = "ST3146707LC" } }`,
		second: `disks = { data = { volume = spare, bus = "scsi", product = "DISK 2" } }`, without: `disks = { data = { volume = spare, bus = "scsi" } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.wwn", first: `disks = { data = { volume = spare, bus = "scsi", wwn = "5000c50015ea71ab" } }`,
		second: `disks = { data = { volume = spare, bus = "scsi", wwn = "5000c50015ea71ac" } }`, without: `disks = { data = { volume = spare, bus = "scsi" } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.rotation_rate", first: `disks = { data = { volume = spare, bus = "sata", rotation_rate = 1 } }`,
		second: `disks = { data = { volume = spare, bus = "sata", rotation_rate = 7200 } }`, without: `disks = { data = { volume = spare, bus = "sata" } }`,
		change: atStart, removal: atStart,
	},
	{
		attribute: "disks.*.iotune.total_bytes_sec", first: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000 } } }`,
		second: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 2000000 } } }`, without: `disks = { data = { volume = spare } }`,
		change: live, removal: live,
	},
	{
		attribute: "disks.*.iotune.total_bytes_sec_max", first: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000, total_bytes_sec_max = 2000000 } } }`,
		second: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000, total_bytes_sec_max = 3000000 } } }`, without: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000 } } }`,
		change: live, removal: live,
	},
	{
		attribute: "disks.*.iotune.total_bytes_sec_max_length", first: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000, total_bytes_sec_max = 2000000, total_bytes_sec_max_length = 2 } } }`,
		second: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000, total_bytes_sec_max = 2000000, total_bytes_sec_max_length = 3 } } }`, without: `disks = { data = { volume = spare, iotune = { total_bytes_sec = 1000000, total_bytes_sec_max = 2000000 } } }`,
		change: live, removal: live,
	},
	{attribute: "disks.*.iotune.read_bytes_sec", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.read_bytes_sec_max", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.read_bytes_sec_max_length", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_bytes_sec", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_bytes_sec_max", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_bytes_sec_max_length", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.total_iops_sec", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.total_iops_sec_max", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.total_iops_sec_max_length", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{
		attribute: "disks.*.iotune.read_iops_sec", first: `disks = { data = { volume = spare, iotune = { read_iops_sec = 1000000 } } }`,
		second: `disks = { data = { volume = spare, iotune = { read_iops_sec = 2000000 } } }`, without: `disks = { data = { volume = spare } }`,
		change: live, removal: live,
	},
	{attribute: "disks.*.iotune.read_iops_sec_max", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.read_iops_sec_max_length", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_iops_sec", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_iops_sec_max", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{attribute: "disks.*.iotune.write_iops_sec_max_length", change: live, removal: live, proof: []string{"TestAccVirtualMachine_LimitedDisks"}},
	{
		attribute: "disks.*.iotune.size_iops_sec", first: `disks = { data = { volume = spare, iotune = { read_iops_sec = 9, size_iops_sec = 4096 } } }`,
		second: `disks = { data = { volume = spare, iotune = { read_iops_sec = 9, size_iops_sec = 8192 } } }`, without: `disks = { data = { volume = spare, iotune = { read_iops_sec = 9 } } }`,
		change: live, removal: live,
	},
	{attribute: "interfaces.*.bandwidth.inbound.average", change: live, removal: never, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.bandwidth.inbound.peak", change: live, removal: live, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.bandwidth.inbound.burst", change: live, removal: live, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.bandwidth.outbound.average", change: live, removal: never, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.bandwidth.outbound.peak", change: live, removal: live, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.bandwidth.outbound.burst", change: live, removal: live, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "the whole `bandwidth` of an interface on a `network` is taken out at the next start"},
	{attribute: "interfaces.*.queues", change: atStart, removal: atStart, proof: []string{"TestInterface_DriverNeedsRestart", "TestAccVirtualMachine_LimitedInterfaces"}},
	{attribute: "interfaces.*.rx_queue_size", change: atStart, removal: atStart, proof: []string{"TestInterface_DriverNeedsRestart", "TestAccVirtualMachine_LimitedInterfaces"}},
	{attribute: "interfaces.*.driver", change: atStart, removal: atStart, proof: []string{"TestInterface_DriverNeedsRestart", "TestAccVirtualMachine_LimitedInterfaces"}},
	{
		attribute: "disks.*.read_only", first: `disks = { data = { volume = spare, read_only = true } }`,
		second: `disks = { data = { volume = spare, read_only = false } }`, change: atStart, removal: never, more: "taken out, it is false",
	},
	{
		attribute: "machine.domain_type", change: replaced, removal: ours, proof: []string{"TestOtherMachine_AliasIsNoChange"}, more: "taken out, it stays as it is",
	},
	{
		attribute: "running", first: `running = true`, second: `running = false`, change: stopped, removal: started, boots: true, more: "true by default",
	},
	{attribute: "shutdown_mode", first: `shutdown_mode = "agent"`, second: `shutdown_mode = "acpi"`, change: ours, removal: ours},
	{attribute: "force_stop", first: `force_stop = false`, second: `force_stop = true`, change: ours, removal: ours},
	{
		attribute: "migration.mode", first: `migration = { mode = "live" }`, second: `migration = { mode = "offline" }`, change: ours, removal: ours,
	},
	{
		attribute: "migration.timeout", first: `migration = { timeout = "1m" }`, second: `migration = { timeout = "2m" }`, change: ours, removal: ours,
	},
	{
		attribute: "migration.bandwidth", first: `migration = { bandwidth = 100 }`, second: `migration = { bandwidth = 200 }`,
		change: ours, removal: ours,
	},
	{
		attribute: "migration.auto_converge", first: `migration = { auto_converge = true }`, second: `migration = { auto_converge = false }`,
		change: ours, removal: ours,
	},
	{
		attribute: "migration.postcopy", first: `migration = { timeout = "1m", postcopy = true }`,
		second: `migration = { timeout = "1m", postcopy = false }`, without: `migration = { timeout = "1m" }`,
		change: ours, removal: ours,
	},
	{attribute: "timeouts.create", first: `timeouts = { create = "5m" }`, second: `timeouts = { create = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.read", first: `timeouts = { read = "5m" }`, second: `timeouts = { read = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.update", first: `timeouts = { update = "5m" }`, second: `timeouts = { update = "6m" }`, change: ours, removal: ours},
	{attribute: "timeouts.delete", first: `timeouts = { delete = "5m" }`, second: `timeouts = { delete = "6m" }`, change: ours, removal: ours},
	{attribute: "max_memory", first: `memory = "48Mi"
  max_memory = "64Mi"`, second: `memory = "48Mi"
  max_memory = "80Mi"`, without: `memory = "48Mi"`, change: atStart, removal: atStart},
	{attribute: "cpu.max_vcpus", first: `cpu = { vcpus = 1, max_vcpus = 2 }`, second: `cpu = { vcpus = 1, max_vcpus = 3 }`, without: `cpu = { vcpus = 1 }`, change: atStart, removal: atStart},
	{attribute: "cpu.mode", first: `cpu = { vcpus = 1, mode = "host-model" }`, second: `cpu = { vcpus = 1, mode = "maximum" }`, without: `cpu = { vcpus = 1 }`, change: atStart, removal: atStart},
	{attribute: "cpu.model", first: `cpu = { vcpus = 1, model = "qemu64" }`, second: `cpu = { vcpus = 1, model = "kvm64" }`, without: `cpu = { vcpus = 1 }`, change: atStart, removal: atStart},
	{attribute: "cpu.topology.sockets", first: `cpu = { vcpus = 2, topology = { sockets = 2, dies = 1, cores = 1, threads = 1 } }`, second: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 1, cores = 2, threads = 1 } }`, without: `cpu = { vcpus = 2 }`, change: atStart, removal: atStart},
	{attribute: "cpu.topology.dies", first: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 2, cores = 1, threads = 1 } }`, second: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 1, cores = 2, threads = 1 } }`, without: `cpu = { vcpus = 2 }`, change: atStart, removal: atStart},
	{attribute: "cpu.topology.cores", first: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 1, cores = 2, threads = 1 } }`, second: `cpu = { vcpus = 2, topology = { sockets = 2, dies = 1, cores = 1, threads = 1 } }`, without: `cpu = { vcpus = 2 }`, change: atStart, removal: atStart},
	{attribute: "cpu.topology.threads", first: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 1, cores = 1, threads = 2 } }`, second: `cpu = { vcpus = 2, topology = { sockets = 1, dies = 1, cores = 2, threads = 1 } }`, without: `cpu = { vcpus = 2 }`, change: atStart, removal: atStart},
	{attribute: "machine.hotplug_ports", first: `machine = { type = "q35", domain_type = "qemu", hotplug_ports = 14 }`, second: `machine = { type = "q35", domain_type = "qemu", hotplug_ports = 16 }`, without: `machine = { type = "q35", domain_type = "qemu" }`, change: atStart, removal: ours, more: "fewer only as far as they are free; taken out, they stay"},
	{attribute: "title", first: `title = "one"`, second: `title = "two"`, change: live, removal: live},
	{attribute: "description", first: `description = "one"`, second: `description = "two"`, change: live, removal: live},
	{attribute: "autostart", first: `autostart = true`, second: `autostart = false`, change: live, removal: never, more: "taken out, it is false"},
	{attribute: "allow_restart", first: `allow_restart = true`, second: `allow_restart = false`, change: ours, removal: ours},
	{attribute: "wait_for.addresses", first: `guest_agent = true
  interfaces = { a = { user = true }, b = { user = true } }
  wait_for = { addresses = ["a"], timeout = "1s" }`, second: `guest_agent = true
  interfaces = { a = { user = true }, b = { user = true } }
  wait_for = { addresses = ["b"], timeout = "1s" }`, without: `guest_agent = true
  interfaces = { a = { user = true }, b = { user = true } }`, change: ours, removal: ours},
	{attribute: "wait_for.agent", first: `guest_agent = true
  wait_for = { agent = true, timeout = "1s" }`, second: `guest_agent = true
  wait_for = { agent = false, timeout = "1s" }`, without: `guest_agent = true`, change: ours, removal: ours},
	{attribute: "wait_for.cloud_init", first: `guest_agent = true
  wait_for = { cloud_init = true, timeout = "1s" }`, second: `guest_agent = true
  wait_for = { cloud_init = false, timeout = "1s" }`, without: `guest_agent = true`, change: ours, removal: ours},
	{attribute: "wait_for.timeout", first: `guest_agent = true
  wait_for = { agent = true, timeout = "1s" }`, second: `guest_agent = true
  wait_for = { agent = true, timeout = "2s" }`, without: `guest_agent = true`, change: ours, removal: ours},
	{attribute: "guest_agent", first: `guest_agent = true`, second: `guest_agent = false`, change: atStart, removal: atStart},
	{attribute: "firmware.type", first: `firmware = { type = "bios" }`, second: `firmware = { type = "efi" }`, change: atStart, removal: never, more: "taken out, it is libvirt's choice from the next start on"},
	{attribute: "firmware.secure_boot", first: `firmware = { type = "efi" }`, second: `firmware = { type = "efi", secure_boot = true }`, change: atStart, removal: never, more: "taken out, it is false"},
	{attribute: "tpm.model", first: `tpm = { model = "tpm-tis" }`, second: `tpm = { model = "tpm-crb" }`, change: atStart, removal: never, more: "taken out, it is libvirt's choice from the next start on"},
	{attribute: "tpm.version", first: `tpm = { model = "tpm-tis", version = "2.0" }`, second: `tpm = { model = "tpm-tis", version = "1.2" }`, without: `tpm = { model = "tpm-tis" }`, change: atStart, removal: never, more: "taken out, it is 2.0"},
	{attribute: "graphics.type", first: `graphics = { type = "vnc" }`, second: `graphics = { type = "spice" }`, change: atStart, removal: atStart, more: "taken out with all of `graphics`"},
	{attribute: "graphics.listen", first: `graphics = { type = "vnc", listen = "127.0.0.2" }`, second: `graphics = { type = "vnc", listen = "127.0.0.3" }`, without: `graphics = { type = "vnc" }`, change: atStart, removal: atStart},
	{attribute: "graphics.port", first: `graphics = { type = "vnc", port = 5981 }`, second: `graphics = { type = "vnc", port = 5982 }`, without: `graphics = { type = "vnc" }`, change: atStart, removal: atStart},
	{attribute: "graphics.password_wo", change: ours, removal: atStart, proof: []string{"TestAccVirtualMachine_Devices"}, more: "looked at when `password_wo_version` changes"},
	{attribute: "graphics.password_wo_version", change: live, removal: atStart, proof: []string{"TestAccVirtualMachine_Devices"}, more: "a display that has no password yet asks for one from the next start on"},
	{attribute: "video.model", first: `video = { model = "vga" }`, second: `video = { model = "bochs" }`, change: atStart, removal: atStart},
	{attribute: "video.vram", first: `video = { model = "vga", vram = 16384 }`, second: `video = { model = "vga", vram = 8192 }`, change: atStart, removal: never, more: "taken out, it is libvirt's choice from the next start on"},
	{attribute: "video.heads", first: `video = { model = "virtio", heads = 1 }`, second: `video = { model = "virtio", heads = 2 }`, change: atStart, removal: never, more: "taken out, it is libvirt's choice from the next start on"},
	{attribute: "rng.source", first: `rng = { source = "/dev/random" }`, second: `rng = { source = "/dev/urandom" }`, without: `rng = {}`, change: atStart, removal: atStart},
	{attribute: "watchdog.model", first: `machine = { type = "pc", domain_type = "qemu" }
  watchdog = { model = "ib700" }`, second: `machine = { type = "pc", domain_type = "qemu" }
  watchdog = { model = "i6300esb" }`, without: `machine = { type = "pc", domain_type = "qemu" }
  watchdog = {}`, change: atStart, removal: atStart},
	{
		attribute: "clock.offset", first: `clock = { offset = "localtime" }`, second: `clock = { offset = "utc" }`, without: ``,
		change: atStart, removal: atStart, more: "taken out, it is UTC",
	},
	{
		attribute: "clock.timezone", first: `clock = { offset = "timezone", timezone = "Europe/Paris" }`,
		second: `clock = { offset = "timezone", timezone = "Asia/Tokyo" }`, without: `clock = {}`, change: atStart, removal: atStart,
	},
	{
		attribute: "clock.timers.*.present", first: `clock = { timers = { hpet = { present = true } } }`,
		second: `clock = { timers = { hpet = { present = false } } }`, without: `clock = { timers = { hpet = {} } }`, change: atStart, removal: atStart,
	},
	{
		attribute: "clock.timers.*.tickpolicy", first: `clock = { timers = { rtc = { tickpolicy = "catchup" } } }`,
		second: `clock = { timers = { rtc = { tickpolicy = "delay" } } }`, without: `clock = { timers = { rtc = {} } }`, change: atStart, removal: atStart,
	},
	{attribute: "on_reboot", first: `on_reboot = "destroy"`, second: `on_reboot = "restart"`, change: live, removal: ours, more: "taken out, it is restart"},
	{attribute: "on_crash", first: `on_crash = "restart"`, second: `on_crash = "preserve"`, change: live, removal: live},
	{
		attribute: "features.hyperv", change: atStart, removal: atStart, proof: []string{"TestAccVirtualMachine_DomainXML"},
		more: "needs KVM",
	},
	{
		attribute: "memory_backing.huge_pages", first: `memory_backing = { shared = true, huge_pages = false }`,
		second: `memory_backing = { shared = true, huge_pages = true }`, without: `memory_backing = {}`, change: atStart, removal: atStart,
	},
	{
		attribute: "memory_backing.huge_page_size", first: `memory_backing = {}`,
		second: `memory_backing = { huge_pages = true, huge_page_size = "2Mi" }`, without: `memory_backing = { huge_pages = true }`,
		change: atStart, removal: atStart,
	},
	{attribute: "memory_backing.shared", first: `memory_backing = { shared = true }`, second: `memory_backing = { shared = false }`, change: atStart, removal: atStart},
	{
		attribute: "domain_xml", first: `domain_xml = "<features><vmport state='off'/></features>"`,
		second: `domain_xml = "<features><vmport state='on'/></features>"`, change: atStart, removal: atStart,
	},
	{
		attribute: "cpu.features", first: `cpu = { vcpus = 1, model = "qemu64", features = { aes = "require" } }`,
		second:  `cpu = { vcpus = 1, model = "qemu64", features = { aes = "disable" } }`,
		without: `cpu = { vcpus = 1, model = "qemu64" }`, change: atStart, removal: atStart,
	},
	{
		attribute: "cpu.pin", first: `cpu = { vcpus = 1, pin = { "0" = "0" } }`, second: `cpu = { vcpus = 1, pin = { "0" = "1" } }`,
		without: `cpu = { vcpus = 1 }`, change: live, removal: atStart,
	},
	{
		attribute: "cpu.emulator_pin", first: `cpu = { vcpus = 1, emulator_pin = "0" }`, second: `cpu = { vcpus = 1, emulator_pin = "1" }`,
		without: `cpu = { vcpus = 1 }`, change: atStart, removal: atStart,
	},
	{
		attribute: "cpu.shares", first: `cpu = { vcpus = 1, shares = 512 }`, second: `cpu = { vcpus = 1, shares = 2048 }`,
		without: `cpu = { vcpus = 1 }`, change: atStart, removal: atStart,
	},
	{attribute: "cpu.period", change: atStart, removal: atStart, proof: []string{"TestCPU_ShareNeedsRestart", "TestAccVirtualMachine_DomainXML"}},
	{attribute: "cpu.quota", change: atStart, removal: atStart, proof: []string{"TestCPU_ShareNeedsRestart", "TestAccVirtualMachine_DomainXML"}},
	{attribute: "watchdog.action", first: `watchdog = { action = "none" }`, second: `watchdog = { action = "poweroff" }`, without: `watchdog = {}`, change: atStart, removal: atStart},
	{attribute: "console.log_file", first: `console = { log_file = "/var/log/libvirt/one.log" }`, second: `console = { log_file = "/var/log/libvirt/two.log" }`, without: `console = {}`, change: atStart, removal: atStart},
	{attribute: "devices_xml", first: `devices_xml = "<sound model='ac97'/>"`, second: `devices_xml = "<sound model='ich9'/>"`, change: atStart, removal: atStart},
	{attribute: "filesystems.*.source", first: `filesystems = { a = { source = "/srv", driver = "9p" } }`, second: `filesystems = { a = { source = "/var", driver = "9p" } }`, change: atStart, removal: atStart},
	{attribute: "filesystems.*.volume", change: atStart, removal: atStart, proof: []string{"TestAccVirtualMachine_SharedFolder"}},
	{attribute: "filesystems.*.target", first: `filesystems = { a = { source = "/srv", driver = "9p", target = "one" } }`, second: `filesystems = { a = { source = "/srv", driver = "9p", target = "two" } }`, without: `filesystems = { a = { source = "/srv", driver = "9p" } }`, change: atStart, removal: atStart},
	{attribute: "filesystems.*.driver", first: `filesystems = { a = { source = "/srv", driver = "9p" } }`, second: `filesystems = { a = { source = "/srv", driver = "virtiofs" } }`, without: `filesystems = { a = { source = "/srv" } }`, change: atStart, removal: atStart},
	{attribute: "filesystems.*.read_only", first: `filesystems = { a = { source = "/srv", driver = "9p", read_only = true } }`, second: `filesystems = { a = { source = "/srv", driver = "9p", read_only = false } }`, without: `filesystems = { a = { source = "/srv", driver = "9p" } }`, change: atStart, removal: atStart},
	{attribute: "interfaces.*.network", change: live, removal: live, proof: []string{"TestAccVirtualMachine_InterfacesChangeLive"}, more: "a bridge for a network and the other way round, too; what has a `boot_order` at the next start"},
	{attribute: "interfaces.*.bridge", change: live, removal: live, proof: []string{"TestAccVirtualMachine_InterfacesChangeLive"}},
	{attribute: "interfaces.*.port_group", change: live, removal: live, proof: []string{"TestInterface_MinimalChange"}},
	{attribute: "interfaces.*.direct.dev", change: live, removal: live, proof: []string{"TestInterface_MinimalChange"}, more: "unplugged and plugged in"},
	{attribute: "interfaces.*.direct.mode", change: live, removal: live, proof: []string{"TestInterface_MinimalChange"}, more: "unplugged and plugged in"},
	{attribute: "interfaces.*.user", change: live, removal: live, proof: []string{"TestAccVirtualMachine_InterfacesChangeLive"}, more: "unplugged and plugged in"},
	{attribute: "interfaces.*.model", first: `interfaces = { a = { user = true, model = "virtio" } }`, second: `interfaces = { a = { user = true, model = "e1000e" } }`, without: `interfaces = { a = { user = true } }`, change: live, removal: live, boots: true, more: "unplugged and plugged in"},
	{attribute: "interfaces.*.mac", first: `interfaces = { a = { user = true, mac = "52:54:00:00:00:01" } }`, second: `interfaces = { a = { user = true, mac = "52:54:00:00:00:02" } }`, without: `interfaces = { a = { user = true } }`, change: live, removal: ours, boots: true, more: "unplugged and plugged in; taken out, it stays as it is"},
	{attribute: "interfaces.*.link", first: `interfaces = { a = { user = true, link = "down" } }`, second: `interfaces = { a = { user = true, link = "up" } }`, without: `interfaces = { a = { user = true } }`, change: live, removal: never, more: "taken out, it is up"},
	{attribute: "interfaces.*.boot_order", first: `interfaces = { a = { user = true, boot_order = 1 } }`, second: `interfaces = { a = { user = true, boot_order = 2 } }`, without: `interfaces = { a = { user = true } }`, change: atStart, removal: atStart},
	{attribute: "interfaces.*.mtu", change: live, removal: atStart, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "unplugged and plugged in; taken out of an interface that is not on a `network`: live"},
	{attribute: "interfaces.*.vlan.tags", change: live, removal: atStart, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "taken out of an interface that is not on a `network`: live"},
	{attribute: "interfaces.*.vlan.trunk", change: live, removal: live, proof: []string{"TestInterface_MinimalChange"}},
	{attribute: "interfaces.*.virtual_port.type", change: live, removal: atStart, proof: []string{"TestInterface_MinimalChange", "TestInterface_NetworkDefaultsNeedRestart"}, more: "unplugged and plugged in; taken out of an interface that is not on a `network`: live"},
	{attribute: "interfaces.*.virtual_port.interface_id", change: live, removal: ours, proof: []string{"TestInterface_MinimalChange"}, more: "unplugged and plugged in; taken out, it stays as it is"},
	{attribute: "interfaces.*.virtual_port.profile_id", change: live, removal: live, proof: []string{"TestInterface_MinimalChange"}, more: "unplugged and plugged in"},
	{
		attribute: "run.command", first: `boot = { kernel = "KERNEL" }
  disks = { root = { volume = spare } }
  run = { entrypoint = ["/a"], command = ["one"] }`, second: `boot = { kernel = "KERNEL" }
  disks = { root = { volume = spare } }
  run = { entrypoint = ["/a"], command = ["two"] }`, without: `boot = { kernel = "KERNEL" }
  disks = { root = { volume = spare } }
  run = { entrypoint = ["/a"] }`, change: atStart, removal: atStart,
	},
	{attribute: "run.image", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.root", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.entrypoint", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.environment", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.environment_from", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.user", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.working_directory", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.stop_signal", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.stop_timeout", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.hostname", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.mounts.*.path", change: atStart, removal: never, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.mounts.*.read_only", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.mounts.*.format", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.network.*.addresses", change: atStart, removal: never, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.network.*.gateway", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.network.*.nameservers", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.network.*.search", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.once", change: ours, removal: ours, proof: []string{"TestAccVirtualMachine_RunOnce"}},
	{attribute: "run.restart", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.timestamps", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
	{attribute: "run.tty", change: atStart, removal: atStart, proof: []string{"TestRun_AllTakesEffectAtNextStart"}},
}
