# A disk of 10 GiB in a file of the claim volumes, which a pod makes, serves over iSCSI, and removes with the binding.
resource "virtclaim_volume_binding" "dynamic" {
  name  = "dynamic"
  hosts = ["node-a"]
  source = {
    dynamic = {
      parameters = { size = "10Gi" }
      container = {
        namespace        = "vms"
        image            = "ghcr.io/virtclaim/virtclaim-volume:0.1.0"
        args             = ["provision", "-folder=/volume/$(POD_NAME)"]
        ports            = [{ container_port = 8443 }, { container_port = 3260 }]
        claims           = [{ claim_name = "volumes", mount_path = "/volume" }]
        security_context = { run_as_non_root = true, fs_group = 65532 }
      }
    }
  }
}
