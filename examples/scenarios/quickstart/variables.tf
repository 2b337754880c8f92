variable "hosts" {
  description = "libvirt URI of each host; the machines run on host-a and host-b."
  type        = map(string)
}

variable "pool" {
  description = "Name, on each host, of the libvirt storage pool that the machines' disks are made in."
  type        = string
  default     = "ssd"
}

variable "kubeconfig" {
  description = "Path of the kubeconfig of the cluster that has the claim."
  type        = string
}

variable "namespace" {
  description = "Namespace of the claim golden."
  type        = string
  default     = "lab"
}

variable "kernel" {
  description = "Path, on the hosts, of the kernel that the machines boot."
  type        = string
}

variable "initrd" {
  description = "Path, on the hosts, of its initial RAM disk."
  type        = string
}

variable "log_dir" {
  description = "Folder, on the hosts, for what the machines write to their serial ports."
  type        = string
}

variable "domain_type" {
  description = "kvm, or qemu where the hosts have no KVM."
  type        = string
  default     = "qemu"
}
