package claim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// locateISCSI translates the in-tree type. QEMU opens the target itself and does no discovery, so neither the portal
// list nor chapAuthDiscovery concerns it.
func locateISCSI(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (location, error) {
	s := pv.Spec.ISCSI
	if mode(pv.Spec.VolumeMode) != corev1.PersistentVolumeBlock {
		return location{}, source.Errorf("", "the %s has volumeMode Filesystem, so there is a filesystem on the iSCSI device of its "+
			"PersistentVolume %s: a virtual machine that wrote to the raw device would destroy it; the claim must have volumeMode Block",
			refOf(claim), pv.Name)
	}
	if s.ISCSIInterface != "" && s.ISCSIInterface != "default" {
		return location{}, source.Errorf("", "the PersistentVolume %s wants the iSCSI interface %q, but QEMU logs in over plain TCP: "+
			"only iscsiInterface default works", pv.Name, s.ISCSIInterface)
	}
	portal, err := source.ParsePortal(s.TargetPortal)
	if err != nil {
		return location{}, source.Errorf("", "targetPortal of the PersistentVolume %s: %w", pv.Name, err)
	}
	iqn, err := source.ISCSIName(s.IQN)
	if err != nil {
		return location{}, source.Errorf("", "iqn of the PersistentVolume %s: %w", pv.Name, err)
	}
	initiator, err := initiatorName(s)
	if err != nil {
		return location{}, source.Errorf("", "initiatorName of the PersistentVolume %s: %w", pv.Name, err)
	}
	login, err := chapLogin(pv, claim)
	if err != nil {
		return location{}, err
	}
	return location{
		volume:   source.ISCSIVolume(portal, iqn, int64(s.Lun), initiator, capacity(claim)),
		readOnly: s.ReadOnly, login: login, warnings: morePortals(pv, portal),
	}, nil
}

func initiatorName(s *corev1.ISCSIPersistentVolumeSource) (string, error) {
	if s.InitiatorName == nil || *s.InitiatorName == "" {
		return "", nil
	}
	return source.ISCSIName(*s.InitiatorName)
}

// chapLogin is that of the session, by default with a secret in the claim's namespace.
func chapLogin(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*source.Login, error) {
	s := pv.Spec.ISCSI
	if !s.SessionCHAPAuth {
		return nil, nil
	}
	if s.SecretRef == nil || s.SecretRef.Name == "" {
		return nil, source.Errorf("", "the PersistentVolume %s has chapAuthSession but no secretRef to take the credentials from", pv.Name)
	}
	namespace := s.SecretRef.Namespace
	if namespace == "" {
		namespace = claim.Namespace
	}
	return &source.Login{Form: source.CHAP, Secret: source.SecretRef{Namespace: namespace, Name: s.SecretRef.Name}}, nil
}

// morePortals warns when there is another portal than the one that is used.
func morePortals(pv *corev1.PersistentVolume, used source.Portal) []string {
	for _, other := range pv.Spec.ISCSI.Portals {
		if p, err := source.ParsePortal(other); err != nil || p != used {
			return []string{fmt.Sprintf("The PersistentVolume %s has more than one iSCSI portal. QEMU does no multipathing: "+
				"only the first one, %s, is used.", pv.Name, used)}
		}
	}
	return nil
}
