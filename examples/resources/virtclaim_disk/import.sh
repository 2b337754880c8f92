# <host>/<pool>/<volume>: the host's key in the provider, the libvirt storage pool, and the storage volume in it
terraform import 'virtclaim_disk.root["web-0"]' node-a/ssd/web-0-root
