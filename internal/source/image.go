package source

import (
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// FileVolume returns a file of the hosts. The path must have been checked.
func FileVolume(name string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{Type: "file", Format: "raw", Name: name}}}
}

// FolderVolume returns a folder of the hosts, which machines share. The path must have been checked.
func FolderVolume(name string) volume.Volume {
	return volume.Volume{Images: []volume.Image{{Type: "dir", Format: "dir", Name: name}}}
}

// BlockVolume returns a device of the hosts. The path must have been checked.
func BlockVolume(name string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{Type: "block", Format: "raw", Name: name}}}
}

// NFSVolume returns a file on an NFS server, which QEMU opens as the numeric user and group. Host and path must have been checked. It has
// no port, which libvirt refuses: QEMU queries the server's portmapper.
func NFSVolume(host, name, user, group string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "nfs", Name: name, Servers: []volume.Server{{Host: host}}, User: user, Group: group,
	}}}
}

// GlusterVolume returns a file on a GlusterFS volume. Its name and path must have been checked.
func GlusterVolume(servers []volume.Server, name, file string, capacity *int64) volume.Volume {
	return volume.Volume{Capacity: capacity, Images: []volume.Image{{
		Type: "network", Format: "raw", Protocol: "gluster", Name: path.Join(name, strings.TrimPrefix(file, "/")), Servers: servers,
	}}}
}
