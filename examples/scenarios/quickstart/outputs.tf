output "machines" {
  description = "UUID of each machine's libvirt domain."
  value       = { for name, machine in virtclaim_virtual_machine.machine : name => machine.uuid }
}

output "disks" {
  description = "Where each machine's disk is: host, storage pool and volume."
  value       = { for name, disk in virtclaim_disk.root : name => disk.id }
}
