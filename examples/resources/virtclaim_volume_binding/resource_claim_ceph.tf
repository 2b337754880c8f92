# A claim of Rook or ceph-csi. The addresses that the cluster has of its monitors are often for pods only: monitors names
# them as the hosts reach them. Where the driver keeps its configuration is known for both; ceph_config_map is for others.
resource "virtclaim_volume_binding" "ceph" {
  name  = "ceph"
  hosts = ["node-a"]
  source = {
    persistent_volume_claim = {
      namespace       = "vms"
      claim_name      = "ceph"
      monitors        = ["192.0.2.1:6789", "192.0.2.2:6789", "192.0.2.3:6789"]
      ceph_config_map = { namespace = "storage", name = "ceph-csi-config" }
    }
  }
}
