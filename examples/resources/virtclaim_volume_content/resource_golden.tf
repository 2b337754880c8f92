# A golden image: one binding fills the claim, another one of the same hosts is for the disks over it, and waits for the content.
locals {
  golden = { persistent_volume_claim = { namespace = "vms", claim_name = "golden" } }
  hosts  = ["node-a", "node-b"]
}

resource "virtclaim_volume_binding" "fill" {
  name   = "golden-fill"
  hosts  = local.hosts
  source = local.golden
}

resource "virtclaim_volume_content" "golden" {
  target = virtclaim_volume_binding.fill.volume
  source = { file = { path = "${path.module}/golden.qcow2" } }
}

resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = local.hosts
  access_mode = "read-shared"
  content     = virtclaim_volume_content.golden.instance_id
  source      = local.golden
}
