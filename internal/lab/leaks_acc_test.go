//go:build acc

package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAccLeaks_SeesEachKind(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	lun := addLUN(t, l, LUNSpec{Size: lunSize})
	spec := ClaimSpec{Namespace: "leaks", Name: "data", LUN: lun}
	if err := l.AddClaim(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, l)
	if again := before.Diff(snapshot(t, l)); len(again) > 0 {
		t.Errorf("nothing happened, but %q", again)
	}

	g := guest{name: "web", log: guestLog(t, h)}
	if err := h.DefineXML(t.Context(), g.xml(h)); err != nil {
		t.Fatal(err)
	}
	uuid := strings.TrimSpace(virsh(t, h, "domuuid", "web"))
	file := filepath.Join(h.Dir, "pools", "ssd", "by-hand.img")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const variables, tpm = "/var/lib/libvirt/qemu/nvram/web_VARS.fd", "/var/lib/libvirt/swtpm/6c1f0b3e"
	if err := h.sandbox.run(t.Context(), "touch "+variables+"; mkdir -p "+tpm); err != nil {
		t.Fatal(err)
	}
	secret, _ := defineSecret(t, l, h)
	transient := guest{name: "virtclaim-copy", log: guestLog(t, h)}
	virsh(t, h, "create", "--paused", writeFile(t, "transient.xml", transient.xml(h)))
	copier := strings.TrimSpace(virsh(t, h, "domuuid", transient.name))
	removePool, err := h.AddSmallPool(t.Context(), "virtclaim-pool", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	virsh(t, h, "vol-create-as", "virtclaim-pool", "virtclaim-part", "1M", "--allocation", "0")
	if err := l.AddCHAPSecret(t.Context(), "leaks", "credentials"); err != nil {
		t.Fatal(err)
	}
	pods := l.Cluster.Client.CoreV1().Pods("leaks")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(body string) {
		_, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims("leaks").
			Patch(t.Context(), "data", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"annotations":{"example.org/note":"hello"},"finalizers":["kubernetes.io/pvc-protection","example.org/hold"]}}`)

	want := []string{
		"cluster: claim leaks/data: annotation example.org/note=hello was not there before",
		"cluster: claim leaks/data: finalizer example.org/hold was not there before",
		"cluster: pod leaks/reader was not there before",
		"cluster: secret leaks/credentials was not there before",
		"host-a: domain virtclaim-copy (" + copier + ") was not there before",
		"host-a: domain web (" + uuid + ") was not there before",
		"host-a: file " + variables + " was not there before",
		"host-a: file " + tpm + " was not there before",
		"host-a: pool virtclaim-pool was not there before",
		"host-a: secret " + secret + " (usage lab) was not there before",
		"host-a: volume ssd/by-hand.img was not there before",
		"host-a: volume virtclaim-pool/virtclaim-part was not there before",
	}
	after := snapshot(t, l)
	if got := before.Diff(after); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if gone := after.Diff(before); len(gone) != len(want) || gone[0] != "cluster: claim leaks/data: annotation example.org/note=hello is gone" {
		t.Errorf("what went is told as %q", gone)
	}

	patch(`{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}`)
	virsh(t, h, "undefine", "web")
	if err := h.sandbox.run(t.Context(), "rm "+variables+"; rmdir "+tpm); err != nil {
		t.Error(err)
	}
	virsh(t, h, "destroy", transient.name)
	if err := removePool(t.Context()); err != nil {
		t.Error(err)
	}
	virsh(t, h, "secret-undefine", secret)
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
	if err := l.Cluster.Client.CoreV1().Secrets("leaks").Delete(t.Context(), "credentials", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := pods.Delete(t.Context(), "reader", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := l.RemoveClaim(t.Context(), spec); err != nil {
		t.Error(err)
	}
}
