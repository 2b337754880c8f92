package claim

import (
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// local translates the type local: a device, or a folder with a mounted filesystem.
func (q request) local() (location, error) {
	path, err := source.Path(q.pv.Spec.Local.Path)
	if err != nil {
		return location{}, q.ofVolume("path", err)
	}
	if q.isBlock() {
		warnings, err := q.device("device")
		return location{volume: source.BlockVolume(path, nil), warnings: warnings}, err
	}
	if err := q.folder(); err != nil {
		return location{}, err
	}
	if strings.HasPrefix(path, "/dev/") {
		// kubelet creates a filesystem on such a device and mounts it at a path of its own.
		return location{}, source.Errorf("", "the PersistentVolume %s has volumeMode Filesystem, but its path %s is a device: "+
			"mount it on the host and say where with mount_path, or use a claim and a volume with volumeMode Block", q.pv.Name, path)
	}
	return fileIn(path), nil
}

// hostPath translates the type hostPath: a folder that is different on each host.
func (q request) hostPath() (location, error) {
	if err := q.folder(); err != nil {
		return location{}, err
	}
	path, err := source.Path(q.pv.Spec.HostPath.Path)
	if err != nil {
		return location{}, q.ofVolume("path", err)
	}
	found := fileIn(path)
	found.oneHost = true
	return found, nil
}
