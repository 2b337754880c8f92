output "machines" {
  description = "UUID of each machine's libvirt domain."
  value       = { for name, machine in virtclaim_virtual_machine.machine : name => machine.uuid }
}
