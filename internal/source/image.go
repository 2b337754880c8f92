package source

import (
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// FileVolume is a file on the hosts that hold it or have it mounted. The path must have been checked.
func FileVolume(name string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{Type: "file", Format: "raw", Name: name}}}
}

// BlockVolume is a device of the hosts. The path must have been checked.
func BlockVolume(name string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{Type: "block", Format: "raw", Name: name}}}
}

// NFSVolume is a file on an NFS server, which QEMU opens as the numeric user and group. Host and path must have been
// checked. The server's portmapper tells QEMU the port, and libvirt refuses one.
func NFSVolume(host, name, user, group string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "nfs", Name: name, Servers: []volume.Server{{Host: host}}, User: user, Group: group,
	}}}
}

// GlusterVolume is a file on a volume of GlusterFS. Its name and path must have been checked.
func GlusterVolume(servers []volume.Server, name, file string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "gluster", Name: path.Join(name, strings.TrimPrefix(file, "/")), Servers: servers,
	}}}
}
