package pods

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
)

func testHolder(f *fakeCluster) Holder {
	return Holder{Cluster: f, Namespace: "vms", Claim: "data", Node: "node-a", Host: "a", Volume: "uid", Image: "volume:1", Binding: "id"}
}

// The pod is made once, and again where it has ended or is about to go. One of others, or of a newer provider, is left alone.
func TestHolder(t *testing.T) {
	is := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := testHolder(nil).pod()
		pod.UID, pod.Status = "pod-uid", ready
		change(pod)
		return pod
	}
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		did   []string
		wrong string
	}{
		"none":       {nil, []string{"create pod"}, ""},
		"there":      {is(func(*corev1.Pod) {}), nil, ""},
		"pending":    {is(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), nil, ""},
		"evicted":    {is(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), []string{"delete pod", "create pod"}, ""},
		"going":      {is(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), []string{"delete pod", "create pod"}, ""},
		"other node": {is(func(p *corev1.Pod) { p.Spec.NodeName = "node-b" }), []string{"delete pod", "create pod"}, ""},
		"foreign":    {is(func(p *corev1.Pod) { p.Labels = nil }), nil, "not made by this binding"},
		"newer":      {is(func(p *corev1.Pod) { p.Annotations = map[string]string{newer.Annotation: "2"} }), nil, newer.Err.Error()},
		"of other":   {is(func(p *corev1.Pod) { p.Labels[HolderLabel] = "other" }), nil, "not made by this binding"},
	} {
		f := &fakeCluster{pod: tt.pod, becomes: ready}
		isNew, err := testHolder(f).Start(t.Context())
		if isNew != (name == "none") {
			t.Errorf("%s: it is new: %v", name, isNew)
		}
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.did, f.did); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// It runs on the very node, reads nothing and changes no file's group, and needs no Secret.
func TestHolder_Pod(t *testing.T) {
	f := &fakeCluster{becomes: ready}
	if _, err := testHolder(f).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.pod.UID = "pod-uid"
	if uid, err := testHolder(f).Await(t.Context()); err != nil || uid != "pod-uid" {
		t.Errorf("%q, %v", uid, err)
	}
	spec := f.pod.Spec
	if spec.NodeName != "node-a" || spec.SecurityContext.FSGroup != nil || !spec.Containers[0].VolumeMounts[0].ReadOnly || !*spec.SecurityContext.RunAsNonRoot {
		t.Errorf("it is %+v", spec)
	}
	if err := testHolder(f).Remove(t.Context()); err != nil || f.pod != nil || slices.Contains(f.did, "delete Secret") {
		t.Errorf("%v %v", err, f.did)
	}
	f = &fakeCluster{}
	if _, err := testHolder(f).Await(t.Context()); !errors.Is(err, notFound) {
		t.Errorf("without a pod: %v", err)
	}
}

// Each host, volume and binding has its own pod, with the same name each time.
func TestHolder_Name(t *testing.T) {
	names := map[string]bool{}
	for _, change := range []func(*Holder){
		func(*Holder) {}, func(p *Holder) { p.Host = "b" }, func(p *Holder) { p.Volume = "other" }, func(p *Holder) { p.Binding = "other" },
		func(p *Holder) { p.Claim, p.Image, p.Node = "same volume", "volume:2", "node-b" },
	} {
		p := testHolder(nil)
		change(&p)
		names[p.Name()] = true
	}
	if len(names) != 4 {
		t.Errorf("they are %v", names)
	}
}
