# An export of an NBD server, encrypted.
resource "virtclaim_volume_binding" "nbd" {
  name  = "nbd"
  hosts = ["node-a"]
  source = {
    nbd = { server = "storage.example", export = "data", tls = true }
  }
}
