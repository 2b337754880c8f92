# A pod writes, which mounts the claim. It runs the provider's kubernetes.volume_image.
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["node-a"]
  source = { persistent_volume_claim = { namespace = "vms", claim_name = "data" } }
}

resource "virtclaim_volume_content" "data" {
  target = virtclaim_volume_binding.data.volume
  source = { container_image = { image = "quay.io/containerdisks/fedora:41" } }
  via    = { pod = { node_selector = { "topology.kubernetes.io/zone" = "a" } } }
}
