resource "virtclaim_virtual_machine" "web" {
  host    = "node-a"
  name    = "web"
  cpu     = { vcpus = 2 }
  memory  = "2Gi"
  machine = { type = "q35" }
  boot = {
    kernel  = "/var/lib/kernels/vmlinuz"
    initrd  = "/var/lib/kernels/initrd"
    cmdline = "console=ttyS0 root=/dev/vda"
  }
  disks = {
    # A disk of its own on the host.
    root = { volume = virtclaim_disk.root.volume, boot_order = 1 }
    # The storage behind a claim, used directly. On virtio and scsi, disks come and go while the machine runs.
    data = { volume = virtclaim_volume_binding.data.volume, bus = "scsi" }
    # What is written to it is discarded when the machine stops.
    scratch = { volume = virtclaim_disk.scratch.volume, ephemeral = true }
  }
  serial = { log_file = "/var/log/libvirt/web.log" }
}
