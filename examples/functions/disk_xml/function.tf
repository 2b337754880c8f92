# For a domain that Terraform does not define: virsh attach-device rescue data.xml --config
resource "local_file" "data" {
  filename = "data.xml"
  content  = provider::virtclaim::disk_xml(virtclaim_volume_binding.data.volume)
}
