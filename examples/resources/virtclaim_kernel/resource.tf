# Debian's kernel, for all machines of a host that run container images.
resource "virtclaim_kernel" "debian" {
  for_each = toset(["node-a", "node-b"])

  host        = each.key
  name_prefix = "debian-"
  usage_type  = "fast"
  source = {
    url = {
      url      = "https://deb.debian.org/debian/pool/main/l/linux-signed-amd64/linux-image-6.12.48+deb13-cloud-amd64_6.12.48-1_amd64.deb"
      checksum = "sha256:0f5d8c2b1a3e4d5c6b7a8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"
    }
  }
  lifecycle { create_before_destroy = true }
}

# The files of a kernel's package in a container image.
resource "virtclaim_kernel" "own" {
  host       = "node-a"
  name       = "own-kernel"
  usage_type = "fast"
  source     = { container_image = { image = "registry.example.org/linux:6.12" } }
}
