data "virtclaim_host" "node_a" {
  host = "node-a"
}

# A plan that would fill the disk says so before the apply does.
check "room" {
  assert {
    condition     = data.virtclaim_host.node_a.usage_types["fast"].available > 100 * pow(1024, 3)
    error_message = "Less than 100 GiB are left on node-a."
  }
}

# Hardware virtualisation where the host has it, emulation elsewhere.
locals {
  domain_type = contains(data.virtclaim_host.node_a.guests["x86_64"].domain_types, "kvm") ? "kvm" : "qemu"
}

data "virtclaim_host" "node_b" {
  host = "node-b"
}

# The features that a machine may have to move between the two hosts while it runs.
locals {
  common_features = setintersection(data.virtclaim_host.node_a.cpu.features, data.virtclaim_host.node_b.cpu.features)
}

# A graphics card of the host and its sound function, which are in one IOMMU group, for one machine.
resource "virtclaim_virtual_machine" "render" {
  name   = "render"
  host   = "node-a"
  memory = "16Gi"
  devices_xml = join("\n", [
    for address in ["0000:01:00.0", "0000:01:00.1"] : data.virtclaim_host.node_a.pci_devices[address].hostdev_xml
  ])
}
