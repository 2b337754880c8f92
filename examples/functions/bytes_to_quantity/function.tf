# A disk over a golden image, with 10Gi more than that.
resource "virtclaim_disk" "root" {
  host      = "node-a"
  name      = "web-root"
  copy_mode = "copy-on-write"
  source    = { volume = virtclaim_volume_binding.golden.volume }
  size = provider::virtclaim::bytes_to_quantity(
    virtclaim_volume_binding.golden.volume.capacity + provider::virtclaim::quantity_to_bytes("10Gi")
  )
}
