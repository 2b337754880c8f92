package claim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sharedDrivers are CSI drivers of filesystems that several hosts can mount at once, by the end of their names: some have a prefix for each
// installation.
var sharedDrivers = []string{
	"cephfs.csi.ceph.com", "smb.csi.k8s.io", "efs.csi.aws.com", "file.csi.azure.com", "filestore.csi.storage.gke.io",
}

// localDrivers are CSI drivers whose filesystems only one host can have mounted, whatever the access modes say.
var localDrivers = []string{iscsiDriver, lvmDriver, zfsDriver, hppDriver}

// isSharedFilesystem reports whether several hosts can have the volume's filesystem mounted. A filesystem on a device is for a single host.
// For other types the access modes decide: Kubernetes, and CSI drivers, offer ReadWriteMany only for shared filesystems.
func (q request) isSharedFilesystem() bool {
	s := q.pv.Spec
	switch {
	case isNFS(q.pv), s.Glusterfs != nil, s.CephFS != nil, s.AzureFile != nil, s.Quobyte != nil:
		return true
	case s.CSI != nil && slices.ContainsFunc(sharedDrivers, func(name string) bool { return strings.HasSuffix(s.CSI.Driver, name) }):
		return true
	case q.isOnDevice():
		return false
	}
	return slices.Contains(q.claim.Status.AccessModes, corev1.ReadWriteMany)
}

// isOnDevice reports whether the volume is known to be a device with a filesystem, or a folder of one host.
func (q request) isOnDevice() bool {
	s := q.pv.Spec
	if c := s.CSI; c != nil {
		return isCephCSI(q.pv) || slices.Contains(localDrivers, c.Driver) || slices.ContainsFunc([]string{"iscsi", "hostpath"},
			func(how string) bool { return attaches(c, how) })
	}
	return s.ISCSI != nil || s.RBD != nil || s.FC != nil || s.AWSElasticBlockStore != nil || s.GCEPersistentDisk != nil ||
		s.Cinder != nil || s.AzureDisk != nil || s.VsphereVolume != nil || s.ScaleIO != nil
}
