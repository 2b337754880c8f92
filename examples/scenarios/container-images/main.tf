# A web server and a database, each the unmodified program of a container image in a machine of its own, on two hosts. The data of the database is on a
# claim: its machine, and the disk with the image's files, can be replaced.

terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner      = "container-images"
  kubernetes = { config_path = var.kubeconfig }
  hosts      = { for key, host in var.hosts : key => { uri = host.uri, storage = { fast = var.pool } } }
}

locals {
  machines = {
    web      = { host = "host-a", mac = "52:54:00:c1:00:01" }
    database = { host = "host-b", mac = "52:54:00:c1:00:02" }
  }
}

# One for all machines of a host.
resource "virtclaim_kernel" "linux" {
  for_each = toset([for machine in local.machines : machine.host])

  host        = each.key
  name_prefix = "linux-"
  usage_type  = "fast"
  cmdline     = var.kernel_cmdline
  source      = { container_image = { image = var.kernel_image } }
  lifecycle { create_before_destroy = true }
}

# The files of the images. What the program writes there stays, too, until another image replaces the disk.
resource "virtclaim_disk" "root" {
  for_each = local.machines

  host       = each.value.host
  name       = "${each.key}-root"
  usage_type = "fast"
  source     = { root_filesystem = { image = var.images[each.key] } }
}

resource "virtclaim_virtual_machine" "web" {
  host       = local.machines.web.host
  name       = "web"
  memory     = "192Mi"
  machine    = { type = "pc", domain_type = var.domain_type }
  boot       = virtclaim_kernel.linux[local.machines.web.host].boot
  disks      = { root = { volume = virtclaim_disk.root["web"].volume } }
  interfaces = { lan = { bridge = var.hosts[local.machines.web.host].bridge, mac = local.machines.web.mac } }
  serial     = { log_file = "${var.log_dir}/web.log" }
  rng        = {}
  run = {
    image   = virtclaim_disk.root["web"].image_configuration
    network = { lan = { addresses = [var.addresses.web] } } # without it, by DHCP
    restart = "on-failure"
  }

  # Another image replaces the disk, which a running machine does not give up.
  lifecycle { replace_triggered_by = [virtclaim_disk.root["web"].id] }
}

# The claim is blank: its machine makes a file system at the first start.
resource "virtclaim_volume_binding" "data" {
  name        = "data"
  hosts       = [local.machines.database.host]
  access_mode = "write-exclusive"
  source      = { persistent_volume_claim = { namespace = var.namespace, claim_name = var.claim } }
}

resource "virtclaim_virtual_machine" "database" {
  host    = local.machines.database.host
  name    = "database"
  memory  = "384Mi"
  machine = { type = "pc", domain_type = var.domain_type }
  boot    = virtclaim_kernel.linux[local.machines.database.host].boot
  disks = {
    root = { volume = virtclaim_disk.root["database"].volume }
    data = { volume = virtclaim_volume_binding.data.volume }
  }
  interfaces = { lan = { bridge = var.hosts[local.machines.database.host].bridge, mac = local.machines.database.mac } }
  serial     = { log_file = "${var.log_dir}/database.log" }
  rng        = {}
  run = {
    image   = virtclaim_disk.root["database"].image_configuration
    mounts  = { data = { path = "/var/lib/postgresql/data", format = "ext4" } }
    network = { lan = { addresses = [var.addresses.database] } }
    restart = "on-failure"
    environment = {
      POSTGRES_HOST_AUTH_METHOD = "trust" # on a network that others are on, a POSTGRES_PASSWORD by environment_from
    }
    stop_timeout = 45 # a database that has to write much needs more than the default
  }

  lifecycle { replace_triggered_by = [virtclaim_disk.root["database"].id] }
}
