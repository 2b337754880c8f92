# One golden claim, and a disk over it for each machine. A larger size is had in place, also while the machine runs.
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["node-a", "node-b"]
  access_mode = "read-shared"
  source = {
    persistent_volume_claim = { namespace = "vms", claim_name = "golden" }
  }
}

resource "virtclaim_disk" "root" {
  for_each = { web-0 = "node-a", web-1 = "node-b" }

  host       = each.value
  name       = "${each.key}-root"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  size       = "20Gi"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}

# A full copy, which does not need the claim any more.
resource "virtclaim_disk" "clone" {
  host       = "node-a"
  name       = "db-root"
  usage_type = "fast"
  copy_mode  = "clone"
  source     = { volume = virtclaim_volume_binding.golden.volume }
  timeouts   = { create = "2h" }
}

# A blank disk.
resource "virtclaim_disk" "scratch" {
  host       = "node-a"
  name       = "web-0-scratch"
  usage_type = "slow"
  size       = "100Gi"
}
