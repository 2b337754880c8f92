//go:build acc

package lab

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAccClaim_BoundAndDeleted(t *testing.T) {
	l := sharedLab(t)
	for _, chap := range []bool{false, true} {
		lun := addLUN(t, l, LUNSpec{Size: lunSize, CHAP: chap})
		spec := ClaimSpec{Namespace: "claims", Name: "data", LUN: lun, Class: "manual", Initiator: "iqn.2025-01.example:me"}
		if err := l.AddClaim(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		core := l.Cluster.Client.CoreV1()
		claim, err := core.PersistentVolumeClaims("claims").Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume, err := core.PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if volume.Spec.ClaimRef.UID != claim.UID || volume.Spec.ISCSI.SessionCHAPAuth != chap {
			t.Errorf("it is bound to another volume: %+v", volume.Spec)
		}
		if err := l.RemoveClaim(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if err := l.RemoveClaim(t.Context(), spec); err != nil {
			t.Error("what is gone already is an error:", err)
		}
		if err := l.Target.RemoveLUN(t.Context(), lun); err != nil {
			t.Error(err)
		}
	}
}

func TestAccClaim_AnyStorage(t *testing.T) {
	l := sharedLab(t)
	onNode := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-a"},
		}},
	}}}}
	sources := map[string]corev1.PersistentVolumeSource{
		"nfs":   {NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/export/data"}},
		"local": {Local: &corev1.LocalVolumeSource{Path: "/dev/disk"}},
		"csi":   {CSI: &corev1.CSIPersistentVolumeSource{Driver: "rbd.csi.ceph.com", VolumeHandle: "data"}},
	}
	for name, source := range sources {
		spec := ClaimSpec{Namespace: "claims", Name: name, Source: &source, Size: lunSize, NodeAffinity: onNode}
		if err := l.AddClaim(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		volume, err := l.Cluster.Client.CoreV1().PersistentVolumes().Get(t.Context(), spec.VolumeName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := volume.Spec
		if !reflect.DeepEqual(got.PersistentVolumeSource, source) || got.NodeAffinity == nil || got.Capacity.Storage().Value() != lunSize {
			t.Errorf("%s: the volume is %+v", name, got)
		}
		if err := l.RemoveClaim(t.Context(), spec); err != nil {
			t.Error(err)
		}
	}
}

func TestAccCluster_SecretsAndConfigMaps(t *testing.T) {
	l := sharedLab(t)
	meta := metav1.ObjectMeta{Namespace: "objects", Name: "settings"}
	if err := l.AddSecret(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": "value"}}); err != nil {
		t.Error(err)
	}
	if err := l.AddConfigMap(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "value"}}); err != nil {
		t.Error(err)
	}
	for range 2 { // a secret that is already gone is no error
		if err := l.RemoveSecret(t.Context(), meta.Namespace, meta.Name); err != nil {
			t.Error(err)
		}
		if err := l.RemoveConfigMap(t.Context(), meta.Namespace, meta.Name); err != nil {
			t.Error(err)
		}
	}
	config, err := l.Cluster.Client.CoreV1().ConfigMaps(meta.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(config.Items) > 0 {
		t.Errorf("left: %+v, %v", config.Items, err)
	}
}

func TestAccCluster_RestartKeepsDataAndAddress(t *testing.T) {
	l := sharedLab(t)
	if err := l.AddNamespace(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	if err := l.Cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Snapshot(t.Context()); err == nil {
		t.Error("a snapshot does not miss the cluster")
	}
	if err := l.Cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Cluster.Client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
