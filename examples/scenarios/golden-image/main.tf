# From an empty claim to machines: the claim is filled with an image by one binding, and read by another one, over which each machine has a
# copy-on-write disk.

terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner      = "golden-image"
  kubernetes = { config_path = var.kubeconfig }
  hosts      = { for key, uri in var.hosts : key => { uri = uri, storage = { fast = var.pool } } }
}

locals {
  machines = { web-0 = "host-a", web-1 = "host-b", web-2 = "host-b" }
  hosts    = distinct(values(local.machines)) # of both bindings
  claim    = { namespace = var.namespace, claim_name = var.claim }
}

# No machine gets this one.
resource "virtclaim_volume_binding" "fill" {
  name        = "golden-fill"
  hosts       = local.hosts
  access_mode = "write-exclusive"
  source      = { persistent_volume_claim = local.claim }
}

resource "virtclaim_volume_content" "golden" {
  target = virtclaim_volume_binding.fill.volume
  source = { file = { path = var.image } }
}

resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = local.hosts
  access_mode = "read-shared"
  content     = virtclaim_volume_content.golden.instance_id
  source      = { persistent_volume_claim = local.claim }
}

resource "virtclaim_disk" "root" {
  for_each = local.machines

  host       = each.value
  name       = "${each.key}-root"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}

resource "virtclaim_virtual_machine" "machine" {
  for_each = virtclaim_disk.root

  host    = each.value.host
  name    = each.key
  memory  = var.memory
  machine = { type = "pc", domain_type = var.domain_type }
  boot    = var.boot
  disks   = { root = { volume = each.value.volume, boot_order = 1 } }
  serial  = { log_file = "${var.log_dir}/${each.key}.log" }

  # Another image replaces all disks, and a running machine's boot disk is not unplugged.
  lifecycle { replace_triggered_by = [virtclaim_disk.root[each.key].id] }
}
