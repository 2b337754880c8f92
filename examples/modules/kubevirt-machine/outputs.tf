output "machine" {
  value       = virtclaim_virtual_machine.this
  description = "The machine."
}

output "unsupported" {
  value       = local.values.unsupported
  description = "Fields of the manifest that are not carried over, with reasons."
}

output "claims" {
  value       = { for key, binding in local.values.bindings : key => binding.claim if binding.claim != null }
  description = "The PersistentVolumeClaims of DataVolumes, which must exist: each is a manifest for the resource kubernetes_manifest."
}

output "secrets" {
  value       = local.values.secrets
  description = "The Kubernetes Secrets that must exist."
}
