package claim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

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
	return q.inFolder(path), nil
}

// hostPath translates the type hostPath: a folder that is different on each host, or the disk.img in it.
func (q request) hostPath() (location, error) {
	if err := q.folder(); err != nil {
		return location{}, err
	}
	path, err := source.Path(q.pv.Spec.HostPath.Path)
	if err != nil {
		return location{}, q.ofVolume("path", err)
	}
	if kind := q.pv.Spec.HostPath.Type; kind != nil {
		if path, err = q.folderOfType(path, *kind); err != nil {
			return location{}, err
		}
	}
	found := q.inFolder(path)
	found.oneHost = true
	return found, nil
}

// democraticHostPath translates a volume of democratic-csi's local-hostpath, which is a folder of one node.
func (q request) democraticHostPath() (location, error) {
	if err := q.folder(); err != nil {
		return location{}, err
	}
	folder, err := q.attribute("path")
	if err != nil {
		return location{}, err
	}
	path, err := source.Path(folder)
	if err != nil {
		return location{}, q.ofVolume("path", err)
	}
	found := q.inFolder(path)
	found.oneHost = true
	return found, nil
}

// folderOfType returns the folder of a hostPath with that type. Only the name disk.img tells that a file is a disk, and not just any file.
func (q request) folderOfType(path string, kind corev1.HostPathType) (string, error) {
	switch kind {
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		if q.options.SharedFolder { // what else is beside the file is not the claim's
			return "", source.Errorf(sharedAttribute, "the path %s of the PersistentVolume %s is a file and no folder (its type is %s): "+
				"remove shared_folder", path, q.pv.Name, kind)
		}
		if folder, ok := strings.CutSuffix(path, diskImage); ok && folder != "" {
			return folder, nil
		}
		return "", source.Errorf("", "the path %s of the PersistentVolume %s is the image itself (its type is %s): rename that to "+
			"disk.img, in a folder of its own, and name the folder in a PersistentVolume with the type Directory, or bind the file by "+
			"source.file, with path = %q, instead of the claim",
			path, q.pv.Name, kind, path)
	case corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev:
		return "", source.Errorf("", "the path %s of the PersistentVolume %s is no folder (its type is %s): use a folder with a "+
			"disk.img, or for a block device a PersistentVolume of the type local and a claim, both with volumeMode Block", path, q.pv.Name,
			kind)
	default:
		return path, nil
	}
}
