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

# A container disk, as KubeVirt has them. It is fetched once for all disks of the pool, and each disk is an overlay over it.
resource "virtclaim_disk" "fedora" {
  host       = "node-a"
  name       = "fedora"
  usage_type = "fast"
  size       = "20Gi"
  source     = { container_image = { image = "quay.io/containerdisks/fedora:41" } }
}

# The files of a container image, whose layers are shared with other disks of the pool. A machine needs a kernel beside it.
resource "virtclaim_disk" "nginx" {
  host       = "node-a"
  name       = "nginx"
  usage_type = "fast"
  source     = { root_filesystem = { image = "docker.io/library/nginx:1.29" } }
}

# A cloud image, verified and unpacked on its way to the host.
resource "virtclaim_disk" "debian" {
  host       = "node-a"
  name       = "debian"
  usage_type = "fast"
  size       = "20Gi"
  source = {
    url = {
      url      = "https://images.example.org/debian-12.qcow2.xz"
      checksum = "sha256:0f9d8f7a2f7e0d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a392817060504"
    }
  }
}

# An image of this machine.
resource "virtclaim_disk" "appliance" {
  host       = "node-a"
  name       = "appliance"
  usage_type = "fast"
  source     = { file = { path = "${path.module}/appliance.raw.zst" } }
}

# What cloud-init reads at the first boot. It is for a machine's disk with device = "cdrom".
resource "virtclaim_disk" "seed" {
  host       = "node-a"
  name       = "fedora-seed"
  usage_type = "fast"
  source = {
    cloud_init = {
      user_data               = <<-EOT
        #cloud-config
        hostname: fedora
      EOT
      network_data_secret_ref = { namespace = "vms", name = "fedora-network" }
    }
  }
}
