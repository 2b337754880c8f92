# iSCSI without Kubernetes. The password is in no state and no plan; raise its version when you change it.
resource "virtclaim_volume_binding" "library" {
  name        = "library"
  hosts       = ["node-a"]
  access_mode = "read-shared"
  source = {
    iscsi = {
      portal              = "storage.example:3260"
      iqn                 = "iqn.2026-01.io.example:library"
      lun                 = 1
      username            = "reader"
      password_wo         = var.library_password
      password_wo_version = 1
    }
  }
}

variable "library_password" {
  type      = string
  ephemeral = true
}
