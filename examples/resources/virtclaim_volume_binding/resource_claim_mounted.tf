# A claim with volumeMode Filesystem that the host has mounted, from whatever driver: the machine gets disk.img in that
# folder. It is made if it is missing, for which the volume must be mounted with nosymfollow, and never touched if it is not.
resource "virtclaim_volume_binding" "mounted" {
  name  = "mounted"
  hosts = ["node-a"]
  source = {
    persistent_volume_claim = {
      namespace         = "vms"
      claim_name        = "files"
      mount_path        = "/srv/claims/files"
      create_disk_image = true
    }
  }
}
