# Debian's package linux-image-cloud-amd64, or rather the one that it depends on, as snapshot.debian.org keeps it.
variable "kernel" {
  type        = object({ url = string, checksum = string })
  description = "URL of a linux-image package, and its checksum as sha256:<hex>."
}

# One kernel for all machines of a host that run container images.
resource "virtclaim_kernel" "debian" {
  for_each = toset(["node-a", "node-b"])

  host        = each.key
  name_prefix = "debian-"
  usage_type  = "fast"
  source      = { url = var.kernel }
  lifecycle { create_before_destroy = true }
}

# The files of a kernel's package in a container image.
resource "virtclaim_kernel" "own" {
  host       = "node-a"
  name       = "own-kernel"
  usage_type = "fast"
  source     = { container_image = { image = "registry.example.org/linux:6.12" } }
}
