package claim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sharedDrivers are CSI drivers of filesystems that several hosts can mount at once, by the end of their names: some have a prefix for each
// installation.
var sharedDrivers = []string{
	nfsDriver, "cephfs.csi.ceph.com", "smb.csi.k8s.io", "efs.csi.aws.com", "file.csi.azure.com", "filestore.csi.storage.gke.io",
}

// isSharedFilesystem reports whether several hosts can have the volume's filesystem mounted. A filesystem on a device is for a single host.
// For other types the access modes decide: Kubernetes, and CSI drivers, offer ReadWriteMany only for shared filesystems.
func (q request) isSharedFilesystem() bool {
	s := q.pv.Spec
	switch {
	case s.NFS != nil, s.Glusterfs != nil, s.CephFS != nil, s.AzureFile != nil, s.Quobyte != nil:
		return true
	case s.CSI != nil && slices.ContainsFunc(sharedDrivers, func(name string) bool { return strings.HasSuffix(s.CSI.Driver, name) }):
		return true
	case q.isOnDevice():
		return false
	}
	return slices.Contains(q.claim.Status.AccessModes, corev1.ReadWriteMany)
}

// isOnDevice reports whether the volume is known to be a device with a filesystem.
func (q request) isOnDevice() bool {
	s := q.pv.Spec
	if c := s.CSI; c != nil {
		return isCephCSI(q.pv) || c.Driver == iscsiDriver || c.Driver == lvmDriver || c.VolumeAttributes["node_attach_driver"] == "iscsi"
	}
	return s.ISCSI != nil || s.RBD != nil || s.FC != nil || s.AWSElasticBlockStore != nil || s.GCEPersistentDisk != nil ||
		s.Cinder != nil || s.AzureDisk != nil || s.VsphereVolume != nil || s.ScaleIO != nil
}
