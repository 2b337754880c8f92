package claim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// The names of CSI drivers. democratic-csi has one for each installation, and ceph-csi a prefix that Rook sets.
const (
	cephDriver  = "rbd.csi.ceph.com"
	iscsiDriver = "iscsi.csi.k8s.io"
	lvmDriver   = "local.csi.openebs.io"
	nfsDriver   = "nfs.csi.k8s.io"
	zfsDriver   = "zfs.csi.openebs.io"
	drbdDriver  = "linstor.csi.linbit.com"
	hppDriver   = "kubevirt.io.hostpath-provisioner"
)

func (q request) csi() (location, error) {
	s := q.pv.Spec.CSI
	switch {
	case s.Driver == iscsiDriver:
		return q.csiISCSI()
	case s.Driver == lvmDriver:
		return q.openEBSLVM()
	case s.Driver == nfsDriver:
		return q.csiNFS()
	case s.Driver == zfsDriver:
		return q.openEBSZFS()
	case s.Driver == drbdDriver:
		return q.linstor()
	case s.Driver == hppDriver:
		return location{}, source.Errorf("", "the PersistentVolume %s is a folder of one node, below a path that only the "+
			"HostPathProvisioner has (spec.storagePools): say where with mount_path = \"<path>/csi/{.spec.csi.volumeHandle}\"", q.pv.Name)
	case attaches(s, "iscsi"):
		return q.democraticISCSI()
	case attaches(s, "nfs"):
		return q.democraticNFS()
	case attaches(s, "hostpath"):
		return q.democraticHostPath()
	}
	return location{}, q.unsupported()
}

// attaches reports whether democratic-csi, whose driver has any name, attaches the volume so (NodeStageVolume in src/driver/index.js).
func attaches(s *corev1.CSIPersistentVolumeSource, how string) bool {
	return s.VolumeAttributes["node_attach_driver"] == how
}

func isCephCSI(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && (pv.Spec.CSI.Driver == cephDriver || strings.HasSuffix(pv.Spec.CSI.Driver, "."+cephDriver))
}

func isRBD(pv *corev1.PersistentVolume) bool { return pv.Spec.RBD != nil || isCephCSI(pv) }

// attribute returns a volume attribute that the driver requires.
func (q request) attribute(name string) (string, error) {
	if value := q.pv.Spec.CSI.VolumeAttributes[name]; value != "" {
		return value, nil
	}
	return "", q.noAttribute(name)
}

func (q request) noAttribute(name string) error {
	return source.Errorf("", "the PersistentVolume %s has no volume attribute %s, which tells the CSI driver %s where the storage is",
		q.pv.Name, name, q.pv.Spec.CSI.Driver)
}

// secretRef returns a reference whose namespace defaults to the claim's.
func (q request) secretRef(ref *corev1.SecretReference) source.SecretRef {
	if ref.Namespace == "" {
		return source.SecretRef{Namespace: q.claim.Namespace, Name: ref.Name}
	}
	return source.SecretRef{Namespace: ref.Namespace, Name: ref.Name}
}
