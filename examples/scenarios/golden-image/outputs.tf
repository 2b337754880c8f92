output "content" {
  description = "What the claim was filled with: a digest that changes with the image."
  value       = virtclaim_volume_content.golden.digest
}

output "machines" {
  description = "UUID of each machine's libvirt domain."
  value       = { for name, machine in virtclaim_virtual_machine.machine : name => machine.uuid }
}
