# An image of Ceph, with the user and key that ceph-csi has in a Kubernetes secret.
resource "virtclaim_volume_binding" "rbd" {
  name  = "rbd"
  hosts = ["node-a", "node-b"]
  source = {
    rbd = {
      monitors   = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
      pool       = "vms"
      image      = "data"
      secret_ref = { namespace = "ceph-csi", name = "csi-rbd-secret" }
    }
  }
}
