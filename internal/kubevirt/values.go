package kubevirt

import (
	"reflect"
	"strings"
)

// values are attributes by their names. What is absent has no name.
type values map[string]any

// Shape is the type of what Convert returns, in JSON: objects with the types of their attributes, of which that of * is a map's; string,
// number, bool, and lists.
const Shape = `{
"machine": {
  "name": "string", "name_prefix": "string", "namespace": "string", "running": "bool", "memory": "string", "max_memory": "string",
  "cpu": {"vcpus": "number", "max_vcpus": "number", "mode": "string", "model": "string", "features": {"*": "string"},
    "topology": {"sockets": "number", "cores": "number", "threads": "number"}},
  "memory_backing": {"huge_pages": "bool", "huge_page_size": "string"},
  "machine": {"type": "string", "arch": "string"}, "firmware": {"type": "string", "secure_boot": "bool"}, "tpm": {"version": "string"},
  "clock": {"offset": "string", "timezone": "string", "timers": {"*": {"present": "bool", "tickpolicy": "string"}}},
  "rng": {"source": "string"}, "serial": {"log_file": "string"}, "graphics": {"type": "string"}, "video": {"model": "string"},
  "watchdog": {"model": "string", "action": "string"}, "guest_agent": "bool", "wait_for": {"agent": "bool"},
  "disks": {"*": {"device": "string", "bus": "string", "target": "string", "boot_order": "number", "serial": "string",
    "read_only": "bool", "ephemeral": "bool", "cache": "string", "io": "string", "iothread": "number", "queues": "number",
    "error_policy": "string", "logical_block_size": "number", "physical_block_size": "number", "rotation_rate": "number",
    "volume": {"binding": "string", "content": "string", "disk": "string"}}},
  "filesystems": {"*": {"target": "string", "volume": {"binding": "string"}}},
  "interfaces": {"*": {"pod": "bool", "multus": "string", "binding": "string", "model": "string", "mac": "string",
    "boot_order": "number", "link": "string", "queues": "number"}},
  "host_devices": {"*": "string"}, "domain_xml": "string", "devices_xml": "string"},
"disks": {"*": {"size": "string", "usage_type": "string", "copy_mode": "string", "source": {
  "volume": {"binding": "string"}, "container_image": {"image": "string", "path": "string", "pull_policy": "string"},
  "cloud_init": {"meta_data": "string", "user_data": "string", "user_data_secret_ref": {"namespace": "string", "name": "string"},
    "network_data": "string", "network_data_secret_ref": {"namespace": "string", "name": "string"}},
  "files": {"label": "string", "content": {"*": "string"},
    "secrets": {"*": {"namespace": "string", "name": "string", "key": "string"}}}}}},
"bindings": {"*": {"access_mode": "string", "source": {
  "persistent_volume_claim": {"namespace": "string", "claim_name": "string", "shared_folder": "bool"},
  "iscsi": {"portal": "string", "iqn": "string", "lun": "number"}, "file": {"path": "string"},
  "dynamic": {"container": {"namespace": "string", "image": "string", "command": ["string"], "args": ["string"]}}},
  "claim": {"apiVersion": "string", "kind": "string", "metadata": {"namespace": "string", "name": "string"},
    "spec": {"accessModes": ["string"], "volumeMode": "string", "storageClassName": "string",
      "resources": {"requests": {"*": "string"}}}}}},
"contents": {"*": {"binding": "string", "source": {"container_image": {"image": "string", "path": "string", "pull_policy": "string"},
  "url": {"url": "string", "checksum": "string"}, "volume": {"binding": "string"}}}},
"secrets": {"*": {"namespace": "string", "name": "string"}},
"unsupported": [{"path": "string", "reason": "string"}]
}`

// put sets an attribute below, by a path of this package's own. Nothing becomes of nil.
func (v values) put(path string, value any) {
	if of := reflect.ValueOf(value); !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil() {
		return
	}
	if name, rest, is := strings.Cut(path, "/"); is {
		v.below(name).put(rest, value)
	} else {
		v[path] = value
	}
}

// below are the attributes of one of them, which is added if it is absent.
func (v values) below(name string) values {
	if v[name] == nil {
		v[name] = values{}
	}
	return v[name].(values)
}

// row is how a field is carried over: the first of some paths that is there, from below a field, the preference or the instance type,
// becomes an attribute. as is the kind of value: word, flag, number, size, {} for an element that is there unless it is disabled, or = with
// what stands for it, unless it is off; any other one is the list of its words.
type row struct{ from, to, as string }

// carry carries fields over.
func (c *converter) carry(base *node, to values, rows ...row) {
	for _, r := range rows {
		n := c.first(base, r.from)
		switch text, isConstant := strings.CutPrefix(r.as, "="); {
		case n == nil:
		case isConstant && n.state() == "on":
			to.put(r.to, text)
		case isConstant:
		case r.as == "{}" && n.state() == "on":
			to.put(r.to, values{})
		case r.as == "{}":
		case r.as == "word":
			to.put(r.to, n.word())
		case r.as == "flag":
			to.put(r.to, n.flag())
		case r.as == "number":
			to.put(r.to, n.number())
		case r.as == "size":
			to.put(r.to, n.size())
		default:
			to.put(r.to, n.one(strings.Fields(r.as)...))
		}
	}
}

// first is the first of some fields. Preferences yield to it.
func (c *converter) first(base *node, from string) (found *node) {
	for path := range strings.SplitSeq(from, "|") {
		at := base
		if rest, is := strings.CutPrefix(path, "preference."); is {
			at, path = c.preference, rest
		} else if rest, is := strings.CutPrefix(path, "instancetype."); is {
			at, path = c.instance, rest
		}
		n := at.at(path)
		if found == nil {
			found = n
		} else if at == c.preference {
			n.skip()
		}
	}
	return found
}
