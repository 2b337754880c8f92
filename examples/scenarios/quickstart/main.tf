# One golden claim, two machines on two hosts: all read the claim, and each writes to a copy-on-write disk of its own.

terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner      = "quickstart"
  kubernetes = { config_path = var.kubeconfig }
  hosts      = { for key, uri in var.hosts : key => { uri = uri, storage = { fast = var.pool } } }
}

locals {
  machines = { web = "host-a", db = "host-b" }
}

resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = values(local.machines)
  access_mode = "read-shared"
  source = {
    persistent_volume_claim = { namespace = var.namespace, claim_name = "golden" }
  }
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
  memory  = "128Mi"
  machine = { type = "pc", domain_type = var.domain_type }
  boot = {
    kernel  = var.kernel
    initrd  = var.initrd
    cmdline = "console=ttyS0 quiet no_timer_check virtclaim.disks=1 virtclaim.write=vda:written-by-${each.key}"
  }
  disks  = { root = { volume = each.value.volume } }
  serial = { log_file = "${var.log_dir}/${each.key}.log" }
}
