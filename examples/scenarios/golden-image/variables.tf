variable "hosts" {
  description = "libvirt URI of each host; the machines run on host-a and host-b."
  type        = map(string)
}

variable "pool" {
  description = "Name, on each host, of the libvirt storage pool that the machines' disks are made in, and that has the image while the claim is filled."
  type        = string
  default     = "ssd"
}

variable "kubeconfig" {
  description = "Path of the kubeconfig of the cluster that has the claim."
  type        = string
}

variable "namespace" {
  description = "Namespace of the claim."
  type        = string
}

variable "claim" {
  description = "Name of the claim: empty, as large as the image or larger, and ReadWriteMany, since two hosts read it."
  type        = string
}

variable "image" {
  description = "Path, on the computer that runs Terraform, of the image: raw or qcow2, packed with gzip, xz or zstd, or not."
  type        = string
}

variable "memory" {
  description = "Memory of each machine."
  type        = string
  default     = "2Gi"
}

variable "boot" {
  description = "Kernel that the machines boot, as paths on the hosts; null if the image boots by itself."
  type        = object({ kernel = string, initrd = string, cmdline = string })
  default     = null
}

variable "log_dir" {
  description = "Folder, on the hosts, for what the machines write to their serial ports."
  type        = string
}

variable "domain_type" {
  description = "kvm, or qemu where the hosts have no KVM."
  type        = string
  default     = "kvm"
}
