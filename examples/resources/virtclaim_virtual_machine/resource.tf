resource "virtclaim_virtual_machine" "web" {
  host        = "node-a"
  name        = "web"
  description = "The shop's web server"
  # A running guest can be given this many processors and this much memory.
  cpu        = { vcpus = 2, max_vcpus = 8, mode = "host-model" }
  memory     = "2Gi"
  max_memory = "8Gi"
  machine    = { type = "q35" }
  firmware   = { type = "efi" }
  tpm        = {}
  disks = {
    # A disk of its own on the host.
    root = { volume = virtclaim_disk.root.volume, boot_order = 1 }
    # The storage behind a claim, used directly. On virtio, scsi and usb, disks come and go while the machine runs.
    data = { volume = virtclaim_volume_binding.data.volume, bus = "scsi", serial = "data" }
    # What is written to it is discarded when the machine stops.
    scratch = { volume = virtclaim_disk.scratch.volume, ephemeral = true }
    # A drive without a medium.
    disc = { device = "cdrom" }
  }
  interfaces = {
    lan = { network = "default" }
    dmz = { bridge = "br-dmz", mac = "52:54:00:00:00:10" }
  }
  serial        = { log_file = "/var/log/libvirt/web.log" }
  rng           = {}
  autostart     = true
  allow_restart = true
  # The machine is there all the same when this is not there in time.
  wait_for = { addresses = ["lan"], timeout = "2m" }
}
