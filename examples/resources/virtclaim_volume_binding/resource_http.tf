# An image on a web server can only be read.
resource "virtclaim_volume_binding" "web" {
  name        = "web"
  hosts       = ["node-a", "node-b"]
  access_mode = "read-shared"
  source = {
    http = { url = "https://images.example/debian-13.raw" }
  }
}
