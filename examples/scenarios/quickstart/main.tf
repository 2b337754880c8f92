# Two claims, two machines, two hosts: each machine writes to the storage behind its claim.

terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner      = "quickstart"
  kubernetes = { config_path = var.kubeconfig }
  hosts      = { for key, uri in var.hosts : key => { uri = uri } }
}

locals {
  machines = {
    web = { host = "host-a", claim = "data" }
    db  = { host = "host-b", claim = "chap" } # its storage asks for a password, which the claim's secret has
  }
}

resource "virtclaim_volume_binding" "disk" {
  for_each = local.machines

  name        = each.value.claim
  hosts       = [each.value.host]
  access_mode = "write-exclusive"
  source = {
    persistent_volume_claim = { namespace = var.namespace, claim_name = each.value.claim }
  }
}

resource "virtclaim_virtual_machine" "machine" {
  for_each = local.machines

  host    = each.value.host
  name    = each.key
  cpu     = { vcpus = 1 }
  memory  = "128Mi"
  machine = { type = "pc", domain_type = var.domain_type }
  boot = {
    kernel  = var.kernel
    initrd  = var.initrd
    cmdline = "console=ttyS0 quiet virtclaim.disks=1 virtclaim.write=vda:written-by-${each.key}"
  }
  disks = {
    data = { volume = virtclaim_volume_binding.disk[each.key].volume }
  }
  serial = { log_file = "${var.log_dir}/${each.key}.log" }
}
