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
    root = { volume = virtclaim_volume_binding.data.volume, boot_order = 1 }
  }
  serial = { log_file = "/var/log/libvirt/web.log" }
}
