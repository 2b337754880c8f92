package claim

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// location is what a PersistentVolume says, before any secret is read.
type location struct {
	volume volume.Volume
	// readOnly says that the PersistentVolume must not be written.
	readOnly bool
	// login says where the credentials are; nil when the storage asks for none.
	login    *source.Login
	warnings []string
}

// locate translates pv, which is bound to claim.
func locate(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (location, error) {
	if pv.Spec.ISCSI != nil {
		return locateISCSI(pv, claim)
	}
	return location{}, source.Errorf("", "the PersistentVolume %s of the %s is of the type %s, which virtclaim can't give to a "+
		"virtual machine; what works is iscsi with volumeMode Block", pv.Name, refOf(claim), typeOf(pv))
}

// typeOf is the type's name in the manifest, and for CSI the driver's.
func typeOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI != nil {
		return "csi with the driver " + pv.Spec.CSI.Driver
	}
	s := reflect.ValueOf(pv.Spec.PersistentVolumeSource)
	for i := range s.NumField() {
		if !s.Field(i).IsNil() {
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "(none)"
}

// capacity is what the bound claim really got, in bytes; nil when it does not say.
func capacity(claim *corev1.PersistentVolumeClaim) *int64 {
	q, ok := claim.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		return nil
	}
	bytes := q.Value()
	return &bytes
}
