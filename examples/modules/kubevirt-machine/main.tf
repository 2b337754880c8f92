# A machine of a KubeVirt manifest: what provider::virtclaim::kubevirt_machine makes of it becomes resources.

terraform {
  required_version = ">= 1.8"
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

locals {
  values  = provider::virtclaim::kubevirt_machine(var.manifest, var.more...)
  machine = local.values.machine
  name    = try(coalesce(var.name, local.machine.name), trimsuffix(local.machine.name_prefix, "-"), "machine")

  # What seeds tell the guest of the manifest's name becomes the machine's.
  hostname = {
    from = "/(: ?\")${split(".", coalesce(local.machine.name, "-"))[0]}([.\"])/"
    to   = "$${1}${split(".", local.name)[0]}$${2}"
  }

  # What fills the claims, and what it is copied of.
  contents = { for key, content in local.values.contents : key => content if var.fill }
  bindings = { for key, binding in local.values.bindings : key => binding if var.fill || !endswith(key, ".source") }

  # The machine's devices of each resource name, and those of which the host has too few.
  host_devices = { for name, resource in local.machine.host_devices : resource => name... }
  missing      = [for resource, names in local.host_devices : resource if length(lookup(var.host_devices, resource, [])) < length(names)]

  # The host's networks for those of the cluster.
  networks = { for key, interface in local.machine.interfaces : key => coalesce(interface.multus, "pod") }

  # Labels and annotations are those of the cluster.
  accepted = concat(["metadata.", "spec.template.metadata."], var.accepted)
  left     = [for field in local.values.unsupported : field if !anytrue([for path in local.accepted : startswith(field.path, path)])]
}

check "unsupported" {
  assert {
    condition     = length(local.left) == 0
    error_message = "Not carried over: ${join("; ", [for field in local.left : "${field.path} (${field.reason})"])}. List in accepted what may be left out."
  }
}

resource "virtclaim_volume_binding" "volume" {
  for_each = local.bindings

  name        = "${local.name}-${each.key}"
  hosts       = coalesce(var.hosts, [var.host])
  access_mode = each.value.access_mode
  source = {
    persistent_volume_claim = each.value.source.persistent_volume_claim == null ? null : {
      namespace         = each.value.source.persistent_volume_claim.namespace
      claim_name        = each.value.source.persistent_volume_claim.claim_name
      shared_folder     = each.value.source.persistent_volume_claim.shared_folder
      attach            = try(var.claims[each.key].attach, null)
      device_path       = try(var.claims[each.key].device_path, null)
      mount_path        = try(var.claims[each.key].mount_path, null)
      monitors          = try(var.claims[each.key].monitors, null)
      create_disk_image = try(var.claims[each.key].create_disk_image, null)
    }
    iscsi   = each.value.source.iscsi
    file    = each.value.source.file
    dynamic = each.value.source.dynamic
  }
}

# What a DataVolume was filled with.
resource "virtclaim_volume_content" "volume" {
  for_each = local.contents

  target = virtclaim_volume_binding.volume[each.value.binding].volume
  via    = var.via
  source = {
    container_image = each.value.source.container_image
    url             = each.value.source.url
    volume          = try(virtclaim_volume_binding.volume[each.value.source.volume.binding].volume, null)
  }
}

resource "virtclaim_disk" "volume" {
  for_each = local.values.disks

  host       = var.host
  name       = "${local.name}-${each.key}"
  usage_type = try(coalesce(each.value.usage_type, var.usage_type), null)
  size       = each.value.size
  copy_mode  = each.value.copy_mode
  source = each.value.source == null ? null : {
    volume          = try(virtclaim_volume_binding.volume[each.value.source.volume.binding].volume, null)
    container_image = each.value.source.container_image
    cloud_init = try(merge(each.value.source.cloud_init, {
      meta_data = replace(each.value.source.cloud_init.meta_data, local.hostname.from, local.hostname.to)
    }), each.value.source.cloud_init)
    files = try(merge(each.value.source.files, {
      content = {
        for name, text in each.value.source.files.content :
        name => endswith(name, "/meta_data.json") ? replace(text, local.hostname.from, local.hostname.to) : text
      }
    }), each.value.source.files)
  }
}

locals {
  volumes = {
    for key, disk in local.machine.disks : key => disk.volume == null ? null : (
      disk.volume.disk != null ? virtclaim_disk.volume[disk.volume.disk].volume :
      disk.volume.content != null && var.fill ? virtclaim_volume_content.volume[disk.volume.content].volume :
      virtclaim_volume_binding.volume[coalesce(disk.volume.binding, disk.volume.content)].volume
    )
  }
}

resource "virtclaim_virtual_machine" "this" {
  host           = var.host
  name           = var.name != null || local.machine.name != null ? local.name : null
  name_prefix    = var.name == null && local.machine.name == null ? local.machine.name_prefix : null
  running        = coalesce(var.running, local.machine.running, true)
  force_stop     = var.force_stop
  allow_restart  = var.allow_restart
  cpu            = merge(local.machine.cpu, { pin = var.cpu_pin })
  memory         = try(coalesce(local.machine.memory, var.memory), null)
  max_memory     = local.machine.max_memory
  memory_backing = local.machine.memory_backing
  machine = {
    type        = try(coalesce(var.machine_type, local.machine.machine.type), null)
    arch        = local.machine.machine.arch
    domain_type = var.domain_type
  }
  firmware    = local.machine.firmware
  tpm         = local.machine.tpm
  boot        = var.boot
  clock       = local.machine.clock
  rng         = local.machine.rng
  serial      = local.machine.serial == null ? null : { log_file = var.log_file }
  graphics    = var.graphics == null ? local.machine.graphics : { type = var.graphics }
  video       = local.machine.video
  watchdog    = local.machine.watchdog
  guest_agent = local.machine.guest_agent
  wait_for    = local.machine.wait_for
  domain_xml  = local.machine.domain_xml
  devices_xml = try(coalesce(join("\n", compact(concat(
    [local.machine.devices_xml],
    flatten([for resource, names in local.host_devices : slice(var.host_devices[resource], 0, length(names)) if !contains(local.missing, resource)]),
  )))), null)

  disks = { for key, disk in local.machine.disks : key => merge(disk, { volume = local.volumes[key] }) }
  filesystems = {
    for key, shared in local.machine.filesystems : key => {
      target = shared.target, volume = virtclaim_volume_binding.volume[shared.volume.binding].volume
    }
  }
  interfaces = {
    for key, interface in local.machine.interfaces : key => merge(
      { for name in ["model", "mac", "boot_order", "link", "queues"] : name => interface[name] },
      try(var.networks[local.networks[key]], null),
    )
  }

  lifecycle {
    precondition {
      condition     = length(setsubtract(values(local.networks), keys(var.networks))) == 0
      error_message = "The variable networks has no network of the host for ${join(", ", setsubtract(values(local.networks), keys(var.networks)))}."
    }
    precondition {
      condition     = length(local.missing) == 0
      error_message = "The variable host_devices has no devices of the host, or too few, for ${join(", ", local.missing)}."
    }
  }
}
