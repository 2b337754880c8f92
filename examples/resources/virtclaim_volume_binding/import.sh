# <namespace>/<claim>/<name>: the claim that the binding holds, and its name. Bindings of other sources have no import.
terraform import virtclaim_volume_binding.data vms/data/data
