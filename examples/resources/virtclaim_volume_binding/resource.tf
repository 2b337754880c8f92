# A claim that one machine writes to, on either of two hosts.
resource "virtclaim_volume_binding" "data" {
  name  = "data"
  hosts = ["node-a", "node-b"]
  source = {
    persistent_volume_claim = { namespace = "vms", claim_name = "data" }
  }
}

# A golden image that many machines read, each through a virtclaim_disk of its own.
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["node-a", "node-b"]
  access_mode = "read-shared"
  source = {
    persistent_volume_claim = { namespace = "vms", claim_name = "golden" }
  }
}
