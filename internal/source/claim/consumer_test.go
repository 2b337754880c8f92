package claim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const (
	selectedNode = "volume.kubernetes.io/selected-node"
	driver       = "block.csi.example.com"
)

// onNodes has a class of a CSI driver that waits for a consumer, and its driver on nodes with a zone each.
func (f *fixture) onNodes(zones map[string]string) {
	f.waitsForConsumer()
	f.class.Provisioner = driver
	f.others = append(f.others, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	for name, zone := range zones {
		named := metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}
		f.others = append(f.others, &corev1.Node{ObjectMeta: named}, &storagev1.CSINode{ObjectMeta: named, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "other"}, {Name: driver, TopologyKeys: []string{"zone"}}},
		}})
	}
}

// unregister takes the driver off a node.
func (f *fixture) unregister(node string) {
	for _, o := range f.others {
		if c, ok := o.(*storagev1.CSINode); ok && c.Name == node {
			c.Spec.Drivers = nil
		}
	}
}

func (f *fixture) drop(lacks func(runtime.Object) bool) {
	f.others = slices.DeleteFunc(f.others, lacks)
}

// provision binds the claim as soon as a node is selected, or takes the selection back.
func (f *fixture) provision(t *testing.T, givesUp bool) (patches func() int) {
	t.Helper()
	n := 0
	f.fake.PrependReactor("patch", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		n++
		patch := string(action.(clienttesting.PatchAction).GetPatch())
		if !strings.Contains(patch, `"`+selectedNode+`":"node-a"`) {
			t.Errorf("the patch is %s", patch)
		}
		now := bound().claim
		if givesUp {
			now = unbound().claim
		}
		return true, now, f.fake.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), now, "vms")
	})
	return func() int { return n }
}

// An apply selects the first host's node, once, and waits until the claim is bound.
func TestAwait_SelectsNode(t *testing.T) {
	zones := map[string]string{"node-a": "one", "node-b": "one"}
	two := claim.Need{AccessMode: volume.WriteExclusive, Nodes: []string{"node-a", "node-b"}}
	isCSINode := func(o runtime.Object) bool { _, ok := o.(*storagev1.CSINode); return ok }
	for name, c := range map[string]struct {
		change func(*fixture)
		need   claim.Need
	}{
		"one host":                  {func(*fixture) {}, exclusive},
		"two hosts of one topology": {func(*fixture) {}, two},
		"a provisioner without CSI": {func(f *fixture) { f.class.Provisioner = "example.com/folders" }, two},
		"no CSINode":                {func(f *fixture) { f.drop(isCSINode) }, exclusive},
		"a driver without topology, and a host that is no node": {func(f *fixture) {
			f.drop(func(o runtime.Object) bool { return o.(metav1.Object).GetName() == "node-b" })
			for _, o := range f.others {
				if runs, ok := o.(*storagev1.CSINode); ok {
					runs.Spec.Drivers[1].TopologyKeys = nil
				}
			}
		}, two},
	} {
		t.Run(name, func(t *testing.T) {
			f := unbound()
			f.onNodes(zones)
			c.change(f)
			client := f.client(t)
			patches := f.provision(t, false)
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			defer cancel()
			if _, info, err := claim.Await(ctx, client, golden, c.need); err != nil || info.UID != "claim-uid" || patches() != 1 {
				t.Errorf("got %v, %v after %d patches", info, err, patches())
			}
		})
	}
}

// Credentials that may not read nodes suffice for one host.
func TestAwait_SelectsNodeWithoutRights(t *testing.T) {
	for _, nodes := range [][]string{{"node-a"}, {"node-a", "node-b"}} {
		for _, what := range []string{"nodes", "csinodes"} {
			f := unbound()
			f.onNodes(map[string]string{"node-a": "one", "node-b": "one"})
			client := f.client(t)
			patches := f.provision(t, false)
			f.fails(what, apierrors.NewForbidden(corev1.Resource(what), "", errors.New("no")))
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			_, _, err := claim.Await(ctx, client, golden, claim.Need{AccessMode: volume.WriteExclusive, Nodes: nodes})
			cancel()
			if len(nodes) == 1 && (err != nil || patches() != 1) {
				t.Errorf("one host without %s: %v", what, err)
			}
			if len(nodes) == 2 && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "allow these credentials to get nodes and csinodes") || patches() != 0) {
				t.Errorf("two hosts without %s: %v", what, err)
			}
		}
	}
}

// What can't be bound for the hosts is refused before anything is written.
func TestAwait_RefusesToSelect(t *testing.T) {
	two := claim.Need{AccessMode: volume.WriteExclusive, Nodes: []string{"node-a", "node-b"}}
	zones := map[string]string{"node-a": "one", "node-b": "two"}
	for name, c := range map[string]struct {
		change func(*fixture)
		need   claim.Need
		want   string
	}{
		"a host that is no node": {
			func(f *fixture) { f.others = nil }, exclusive, "node-a is no Kubernetes node",
		},
		"two topologies": {func(*fixture) {}, two, "node-a and node-b exclude each other"},
		"a topology that a host has not": {func(f *fixture) {
			f.drop(func(o runtime.Object) bool { return o.(metav1.Object).GetName() == "node-b" })
		}, two, "node-a and node-b exclude each other"},
		"a driver that one node has not":  {func(f *fixture) { f.unregister("node-b") }, two, driver + " is not registered on the Kubernetes node node-b"},
		"a driver that the first has not": {func(f *fixture) { f.unregister("node-a") }, two, driver + " is not registered on the Kubernetes node node-a"},
		"a driver that no node has":       {func(f *fixture) { f.unregister("node-a") }, exclusive, driver + " is not registered on the Kubernetes node node-a"},
		"no provisioner": {
			func(f *fixture) { f.class.Provisioner = "kubernetes.io/no-provisioner" }, exclusive, "name a PersistentVolume in the claim's volumeName",
		},
		"an apply that may not": {func(*fixture) {}, claim.Need{Nodes: []string{"node-a"}, NotSelecting: "select_node = false"}, "select_node = false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := unbound()
			f.onNodes(zones)
			c.change(f)
			client := f.client(t)
			patches := f.provision(t, false)
			_, _, err := claim.Await(t.Context(), client, golden, c.need)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 || patches() != 0 {
				t.Errorf("got %v after %d patches, want one with %q", err, patches(), c.want)
			}
		})
	}
}

// A provisioner that gives up on the node takes the selection back: the apply fails with its reason, and does not select again.
func TestAwait_ProvisionerGivesUp(t *testing.T) {
	for name, selected := range map[string]bool{"of this apply": false, "of an earlier one": true} {
		t.Run(name, func(t *testing.T) {
			f := unbound()
			f.onNodes(map[string]string{"node-a": "one"})
			f.others = append(f.others, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "vms", Name: "full"},
				InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "claim-uid"},
				Message:        "no room on node-a", LastTimestamp: metav1.NewTime(time.Unix(1, 0)),
			}, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "vms", Name: "waits"},
				InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "claim-uid"},
				Reason:         "WaitForFirstConsumer", Message: "waiting for first consumer", LastTimestamp: metav1.NewTime(time.Unix(2, 0)),
			}, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "vms", Name: "external"},
				InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "claim-uid"},
				Reason:         "ExternalProvisioning", Message: "Waiting for a volume to be created", LastTimestamp: metav1.NewTime(time.Unix(3, 0)),
			})
			if selected {
				f.claim.Annotations = map[string]string{selectedNode: "node-a"}
			}
			client := f.client(t)
			patches := f.provision(t, true)
			if selected {
				f.whileWaiting(f.becomes(t, unbound().claim))
			}
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			defer cancel()
			_, _, err := claim.Await(ctx, client, golden, exclusive)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "gave up on the Kubernetes node node-a") ||
				!strings.Contains(err.Error(), `"no room on node-a"`) || selected != (patches() == 0) {
				t.Errorf("got %v after %d patches", err, patches())
			}
		})
	}
}

// A plan and a look write nothing, and say what an apply would do.
func TestResolve_SaysWhichNodeIsSelected(t *testing.T) {
	f := unbound()
	f.onNodes(map[string]string{"node-a": "one"})
	client := f.client(t)
	_, _, err := claim.Resolve(t.Context(), client, golden, exclusive)
	var notReady *source.NotReady
	if !errors.As(err, &notReady) || !strings.Contains(err.Error(), "the apply selects the Kubernetes node node-a for it") {
		t.Errorf("a plan says %v", err)
	}
	seen, err := claim.Preview(t.Context(), client, golden, claim.Options{})
	if err != nil || seen.Wrong == nil || !strings.Contains(seen.Wrong.Error(), "a binding's apply selects the Kubernetes node of its first host for it") {
		t.Errorf("a look says %v, %v", seen.Wrong, err)
	}
	for _, action := range f.fake.Actions() {
		if action.GetVerb() == "patch" {
			t.Errorf("there was a patch: %v", action)
		}
	}
}
