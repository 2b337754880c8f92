# An image on a GlusterFS volume.
resource "virtclaim_volume_binding" "gluster" {
  name  = "gluster"
  hosts = ["node-a", "node-b"]
  source = {
    gluster = { servers = ["gluster-1.example", "gluster-2.example"], volume = "vms", path = "data.img" }
  }
}
