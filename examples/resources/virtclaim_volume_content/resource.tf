# A claim gets an image, and then a machine, which boots from the claim and writes to it.
resource "virtclaim_volume_binding" "web" {
  name   = "web"
  hosts  = ["node-a", "node-b"]
  source = { persistent_volume_claim = { namespace = "vms", claim_name = "web" } }
}

resource "virtclaim_volume_content" "web" {
  target = virtclaim_volume_binding.web.volume
  source = {
    url = {
      url      = "https://images.example.org/debian-13.qcow2"
      checksum = "sha256:0f9d8f7a2f7e0d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a392817060504"
    }
  }
}

resource "virtclaim_virtual_machine" "web" {
  host   = "node-a"
  name   = "web"
  memory = "2Gi"
  disks  = { root = { volume = virtclaim_volume_content.web.volume, boot_order = 1 } }
}
