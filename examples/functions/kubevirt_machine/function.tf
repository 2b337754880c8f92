# What a manifest becomes, before anything is made of it.
locals {
  web = provider::virtclaim::kubevirt_machine(file("${path.module}/web.yaml"), file("${path.module}/instancetype.yaml"))
}

output "machine" {
  value = local.web.machine
}

output "unsupported" {
  value = local.web.unsupported
}

# An object is a manifest, too.
output "memory" {
  value = provider::virtclaim::kubevirt_machine({
    apiVersion = "kubevirt.io/v1"
    kind       = "VirtualMachineInstance"
    metadata   = { name = "web" }
    spec       = { domain = { memory = { guest = "2Gi" }, devices = {} } }
  }).machine.memory
}
