terraform {
  required_providers {
    virtclaim = { source = "virtclaim/virtclaim" }
  }
}

provider "virtclaim" {
  owner      = "prod-web"
  kubernetes = { config_path = "~/.kube/config" }
  hosts = {
    node-a = { uri = "qemu+ssh://root@node-a/system" }
    node-b = { uri = "qemu+tls://node-b/system", kubernetes_node = "worker-2" }
  }
}
