# A disk of 10 GiB that a server makes, which has the volumes of many bindings.
resource "virtclaim_volume_binding" "dynamic" {
  name  = "dynamic"
  hosts = ["node-a"]
  source = {
    dynamic = {
      parameters = { size = "10Gi" }
      server = {
        url            = "https://volumes.example.org/volume"
        ca_certificate = file("volumes-ca.pem")
        secret_ref     = { namespace = "vms", name = "volumes" } # with the key token
        namespace      = "vms"                                   # of what its answers name
      }
    }
  }
}
