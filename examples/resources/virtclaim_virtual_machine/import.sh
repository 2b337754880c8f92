# <host>/<name>: the host's key in the provider, and the name of the domain
terraform import virtclaim_virtual_machine.web node-a/web
