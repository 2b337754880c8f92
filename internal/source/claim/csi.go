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
	case s.VolumeAttributes["node_attach_driver"] == "iscsi":
		return q.democraticISCSI()
	}
	return location{}, q.unsupported()
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
