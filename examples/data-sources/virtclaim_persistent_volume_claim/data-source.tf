data "virtclaim_persistent_volume_claim" "data" {
  namespace  = "vms"
  claim_name = "data"
}

# Each plan says whether machines could have the claim, and who mounts it.
check "data" {
  assert {
    condition     = data.virtclaim_persistent_volume_claim.data.volume_error == null
    error_message = coalesce(data.virtclaim_persistent_volume_claim.data.volume_error, "It can be bound.")
  }
  assert {
    condition     = length([for pod in data.virtclaim_persistent_volume_claim.data.pods : pod if !pod.read_only]) == 0
    error_message = "A pod may write to the claim."
  }
}

# What libvirt would open, for those who want to know before anything is held.
output "disk_xml" {
  value = data.virtclaim_persistent_volume_claim.data.disk_xml
}
