# An image on an NFS server, which QEMU opens itself: no host has it mounted.
resource "virtclaim_volume_binding" "nfs" {
  name  = "nfs"
  hosts = ["node-a", "node-b"]
  source = {
    nfs = { server = "storage.example", path = "/exports/vms/data.img", uid = 107, gid = 107 }
  }
}
