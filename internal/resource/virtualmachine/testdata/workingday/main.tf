variable "uri" { type = string }
variable "log_dir" { type = string }
variable "images" { type = map(string) }
variable "size" { type = string }
variable "allow_restart" { type = bool }

provider "virtclaim" {
  owner = "workingday"
  hosts = { host-e = { uri = var.uri, storage = { fast = "ssd" } } }
}

resource "virtclaim_kernel" "linux" {
  host        = "host-e"
  name_prefix = "linux-"
  usage_type  = "fast"
  cmdline     = "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off"
  source      = { container_image = { image = var.images.kernel } }
  lifecycle { create_before_destroy = true }
}

resource "virtclaim_disk" "web" {
  host        = "host-e"
  name_prefix = "web-"
  usage_type  = "fast"
  source      = { root_filesystem = { image = var.images.web } }
}

resource "virtclaim_virtual_machine" "web" {
  host        = "host-e"
  name_prefix = "web-"
  memory      = "160Mi"
  machine     = { domain_type = "qemu", type = "pc" }
  boot        = virtclaim_kernel.linux.boot
  disks       = { root = { volume = virtclaim_disk.web.volume } }
  interfaces  = { lan = { network = "red" } }
  serial      = { log_file = "${var.log_dir}/web.log" }
  rng         = {}
  wait_for    = { addresses = ["lan"] }
  run = {
    image   = virtclaim_disk.web.image_configuration
    restart = "on-failure"
  }
  lifecycle {
    create_before_destroy = true
    replace_triggered_by  = [virtclaim_disk.web.id]
  }
}

locals {
  machines = {
    database = {
      memory    = "256Mi", stop_timeout = 45, mount = "/var/lib/postgresql/data", environment = { POSTGRES_HOST_AUTH_METHOD = "trust" }
      addresses = ["192.168.71.10/24"]
    }
    static = { restart = "always" }
    script = { mount = "/data" }
    job    = { once = true, restart = "never" }
  }
}

resource "virtclaim_disk" "root" {
  for_each = local.machines

  host       = "host-e"
  name       = "${each.key}-root"
  usage_type = "fast"
  source     = { root_filesystem = { image = var.images[each.key] } }
}

resource "virtclaim_disk" "data" {
  for_each = { for key, machine in local.machines : key => machine if can(machine.mount) }

  host       = "host-e"
  name       = "${each.key}-data"
  usage_type = "fast"
  size       = var.size
}

resource "virtclaim_virtual_machine" "each" {
  for_each = local.machines

  host          = "host-e"
  name          = each.key
  memory        = try(each.value.memory, "128Mi")
  allow_restart = var.allow_restart
  machine       = { domain_type = "qemu", type = "pc" }
  boot          = virtclaim_kernel.linux.boot
  disks = merge({ root = { volume = virtclaim_disk.root[each.key].volume } },
  can(each.value.mount) ? { data = { volume = virtclaim_disk.data[each.key].volume } } : {})
  interfaces = { lan = { network = "red", mac = format("52:54:00:c1:00:%02x", index(keys(local.machines), each.key)) } }
  serial     = { log_file = "${var.log_dir}/${each.key}.log" }
  rng        = {}
  run = {
    image        = virtclaim_disk.root[each.key].image_configuration
    once         = try(each.value.once, null)
    restart      = try(each.value.restart, "on-failure")
    stop_timeout = try(each.value.stop_timeout, null)
    environment  = try(each.value.environment, null)
    mounts       = can(each.value.mount) ? { data = { path = each.value.mount, format = "ext4" } } : null
    network      = can(each.value.addresses) ? { lan = { addresses = each.value.addresses } } : null
  }
  lifecycle { replace_triggered_by = [virtclaim_disk.root[each.key].id] }
}

output "web" {
  value = virtclaim_virtual_machine.web.addresses["lan"][0]
}

output "pending" {
  value = concat(virtclaim_virtual_machine.web.pending, virtclaim_virtual_machine.each["database"].pending)
}
