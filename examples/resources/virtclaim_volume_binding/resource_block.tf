# A block device of the host.
resource "virtclaim_volume_binding" "block" {
  name  = "block"
  hosts = ["node-a"]
  source = {
    block = { path = "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3" }
  }
}
