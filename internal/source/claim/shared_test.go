package claim_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A filesystem that is mounted on several hosts must support that: ext4 on a device destroys itself.
func TestResolve_MountPathOnTwoHosts(t *testing.T) {
	once, many := corev1.ReadWriteOnce, corev1.ReadWriteMany
	iscsi := bound().pv.Spec.PersistentVolumeSource
	readOnly := *iscsi.ISCSI
	readOnly.ReadOnly = true
	csi := func(driver string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "x"}}
	}
	nfs := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b"}}
	for name, c := range map[string]struct {
		volume corev1.PersistentVolumeSource
		modes  []corev1.PersistentVolumeAccessMode
		mode   volume.AccessMode
		shared bool
	}{
		"iscsi":                            {iscsi, []corev1.PersistentVolumeAccessMode{once}, volume.WriteExclusive, false},
		"iscsi that claims to be for many": {iscsi, []corev1.PersistentVolumeAccessMode{many}, volume.WriteExclusive, false},
		"iscsi that nobody writes to":      {corev1.PersistentVolumeSource{ISCSI: &readOnly}, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, volume.ReadShared, true},
		"ceph-csi":                         {csi("rook-ceph.rbd.csi.ceph.com"), []corev1.PersistentVolumeAccessMode{once}, volume.WriteExclusive, false},
		"cephfs":                           {csi("rook-ceph.cephfs.csi.ceph.com"), []corev1.PersistentVolumeAccessMode{once}, volume.WriteExclusive, true},
		"another driver":                   {csi("files.example.com"), []corev1.PersistentVolumeAccessMode{once}, volume.WriteExclusive, false},
		"another driver for many":          {csi("files.example.com"), []corev1.PersistentVolumeAccessMode{many}, volume.WriteExclusive, true},
		"nfs":                              {nfs, []corev1.PersistentVolumeAccessMode{once}, volume.WriteExclusive, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := boundTo(c.volume, corev1.PersistentVolumeFilesystem)
			f.claim.Status.AccessModes = c.modes
			need := claim.Need{AccessMode: c.mode, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/golden"}}
			_, _, err := claim.Resolve(t.Context(), f.client(t), golden, need)
			var wrong *source.Error
			if (err == nil) != c.shared || err != nil && (!errors.As(err, &wrong) || wrong.Attribute != "mount_path" || !strings.Contains(err.Error(), "one host only")) {
				t.Errorf("on two hosts: %v", err)
			}
			need.Nodes = []string{"a"}
			if _, _, err := claim.Resolve(t.Context(), f.client(t), golden, need); err != nil {
				t.Errorf("on one host: %v", err)
			}
		})
	}
}
