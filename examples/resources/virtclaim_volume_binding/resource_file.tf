# A raw image in a file of the host.
resource "virtclaim_volume_binding" "file" {
  name  = "file"
  hosts = ["node-a"]
  source = {
    file = { path = "/srv/images/data.img" }
  }
}
