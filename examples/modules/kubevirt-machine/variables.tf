variable "manifest" {
  type        = any
  description = "The manifest of a VirtualMachine or VirtualMachineInstance: YAML, or an object. An error prints it: Secrets belong into more."
}

variable "more" {
  type        = list(string)
  default     = []
  description = "Further manifests to which it refers: an instance type, a preference, DataVolumes, ConfigMaps, Secrets."
}

variable "accepted" {
  type        = list(string)
  default     = []
  description = "Paths, or beginnings of paths, of fields that may be left out: no warning names them."
}

variable "host" {
  type        = string
  description = "Key of the host on which the machine runs."
}

variable "hosts" {
  type        = list(string)
  default     = null
  description = "Keys of the hosts that may use its claims. Defaults to host."
}

variable "usage_type" {
  type        = string
  default     = null
  description = "Kind of storage for its local disks. Defaults to the only one of the host."
}

variable "networks" {
  type = map(object({
    network = optional(string)
    bridge  = optional(string)
    user    = optional(bool)
    direct  = optional(object({ dev = string, mode = optional(string) }))
    vlan    = optional(object({ tags = list(number) }))
  }))
  default     = { pod = { network = "default" } }
  description = "What the host has for the cluster's networks: for that of the pods (pod), and for each NetworkAttachmentDefinition, as <namespace>/<name>."
}

variable "claims" {
  type = map(object({
    attach            = optional(bool)
    device_path       = optional(string)
    mount_path        = optional(string)
    monitors          = optional(list(string))
    create_disk_image = optional(bool)
  }))
  default     = {}
  description = "How the hosts reach the storage of claims that QEMU can't open itself, by the names of volumes."
}

variable "fill" {
  type        = bool
  default     = true
  description = "Whether the claims of DataVolumes are filled. Not if they are there with their content, as those of a machine that ran in KubeVirt."
}

variable "via" {
  type = object({
    host       = optional(string)
    usage_type = optional(string)
    pod        = optional(object({ node_selector = optional(map(string)) }))
  })
  default     = null
  description = "What writes the content of DataVolumes: the host, unless a pod does."
}

variable "name" {
  type        = string
  default     = null
  description = "Name of the machine and host name in its seeds, instead of the manifest's: for several machines of one manifest."
}

variable "memory" {
  type        = string
  default     = null
  description = "Memory, if the manifest has none."
}

variable "running" {
  type        = bool
  default     = null
  description = "Whether the machine runs, instead of what the manifest says."
}

variable "force_stop" {
  type        = bool
  default     = null
  description = "Whether a guest that does not shut down loses its power."
}

variable "allow_restart" {
  type        = bool
  default     = null
  description = "Whether a change that needs it restarts the machine."
}

variable "machine_type" {
  type        = string
  default     = null
  description = "Type of the emulated computer, if the host lacks that of the manifest, such as pc-q35-rhel9.4.0."
}

variable "domain_type" {
  type        = string
  default     = null
  description = "qemu, on a host without KVM."
}

variable "boot" {
  type        = object({ kernel = string, initrd = optional(string), cmdline = optional(string) })
  default     = null
  description = "A kernel of the host to boot, as kernelBoot has it from an image: virtclaim_kernel has one."
}

variable "cpu_pin" {
  type        = map(string)
  default     = null
  description = "Processors of the host for those of the machine, where the manifest asks for dedicated ones."
}

variable "host_devices" {
  type        = map(list(string))
  default     = {}
  description = "The <hostdev> of devices of the host, by the resource names of gpus and hostDevices: see the data source virtclaim_host."
}

variable "graphics" {
  type        = string
  default     = null
  description = "vnc or spice: a display, which KubeVirt gives each machine. It is served at 127.0.0.1 of the host, without a password."
}

variable "log_file" {
  type        = string
  default     = null
  description = "File of the host that gets the output of the serial port."
}
