variable "size" {
  type    = string
  default = "20Gi"

  validation {
    condition     = provider::virtclaim::quantity_to_bytes(var.size) >= provider::virtclaim::quantity_to_bytes("10Gi")
    error_message = "The root disk needs 10Gi at least."
  }
}
