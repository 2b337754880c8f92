terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner = "prod-web"
  kubernetes = {
    config_path = "~/.kube/config"
  }
  hosts = {
    node-a = {
      uri     = "qemu+ssh://root@node-a/system"
      storage = { fast = "ssd", slow = "rust" } # usage type of disks = libvirt storage pool
    }
    # Without storage, its usage types are those of the annotations of the Kubernetes node.
    node-b = { uri = "qemu+tls://node-b/system", kubernetes_node = "worker-2" }
  }
}
