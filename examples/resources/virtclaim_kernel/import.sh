# <host>/<pool>/<volume>: the host's key in the provider, the libvirt storage pool, and the storage volume with the kernel in it
terraform import 'virtclaim_kernel.debian["node-a"]' node-a/ssd/debian-mf3ym65vxc
