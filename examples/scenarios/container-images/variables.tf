variable "hosts" {
  description = "Each host's libvirt URI, and the bridge of its network; the web server runs on host-a, the database on host-b."
  type        = map(object({ uri = string, bridge = string }))
}

variable "pool" {
  description = "Name, on each host, of the libvirt storage pool for kernels and root disks. It must be a folder."
  type        = string
  default     = "ssd"
}

variable "kernel_image" {
  description = "Container image with a distribution's kernel: boot/vmlinuz-<release> and lib/modules/<release>."
  type        = string
}

variable "kernel_cmdline" {
  description = "Command line of the kernel; null for the default."
  type        = string
  default     = null
}

variable "images" {
  description = "Container images of the web server and of the database."
  type        = object({ web = string, database = string })
  default = {
    web      = "docker.io/library/nginx:1.29"
    database = "docker.io/library/postgres:17"
  }
}

variable "addresses" {
  description = "Address of each machine, with the length of the network's prefix, such as 10.0.0.5/24."
  type        = object({ web = string, database = string })
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
  description = "Name of the claim for the data of the database: blank, with volumeMode Block."
  type        = string
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
