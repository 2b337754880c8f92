package lab

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClaimsAreBoundAndGo(t *testing.T) {
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

func TestClusterKeepsDataAndAddressWhenItRestarts(t *testing.T) {
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
