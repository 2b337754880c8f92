package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// DelayedClass is a StorageClass with volumeBindingMode WaitForFirstConsumer of a CSI driver of the same name, which runs on some nodes.
type DelayedClass struct {
	Name string
	// TopologyKey is the label with which the driver tells where a volume can be used.
	TopologyKey string
	// Nodes are the label's values by node.
	Nodes map[string]string
}

// AddDelayedClass creates the class and its nodes.
func (l *Lab) AddDelayedClass(ctx context.Context, c DelayedClass) error {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Provisioner: c.Name, VolumeBindingMode: &wait}
	core, storage := l.Cluster.Client.CoreV1(), l.Cluster.Client.StorageV1()
	if _, err := storage.StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make StorageClass %s: %w", c.Name, err)
	}
	for name, value := range c.Nodes {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{c.TopologyKey: value}}
		node := &corev1.Node{ObjectMeta: meta}
		if _, err := core.Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make Node %s: %w", name, err)
		}
		drivers := []storagev1.CSINodeDriver{{Name: c.Name, NodeID: name, TopologyKeys: []string{c.TopologyKey}}}
		runs := &storagev1.CSINode{ObjectMeta: meta, Spec: storagev1.CSINodeSpec{Drivers: drivers}}
		if _, err := storage.CSINodes().Create(ctx, runs, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make CSINode %s: %w", name, err)
		}
	}
	return nil
}

// RemoveDelayedClass removes what AddDelayedClass created.
func (l *Lab) RemoveDelayedClass(ctx context.Context, c DelayedClass) error {
	core, storage := l.Cluster.Client.CoreV1(), l.Cluster.Client.StorageV1()
	created := metav1.ListOptions{LabelSelector: c.TopologyKey} // a node of the lab has no such label
	return errors.Join(storage.StorageClasses().Delete(ctx, c.Name, metav1.DeleteOptions{}),
		core.Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, created),
		storage.CSINodes().DeleteCollection(ctx, metav1.DeleteOptions{}, created))
}

// provisioner does for claims of a class what external-provisioner does: it waits until a node is selected and Kubernetes asks for a
// volume, and makes one for that node.
type provisioner struct {
	*Lab
	class  DelayedClass
	source corev1.PersistentVolumeSource
	// givesUp is why there is no volume on any node.
	givesUp string
}

// Provision makes volumes of a source for claims of a class until stop is called, which returns what failed. With givesUp it makes none,
// and says that in an event.
func (l *Lab) Provision(ctx context.Context, c DelayedClass, source corev1.PersistentVolumeSource, givesUp string) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- provisioner{l, c, source, givesUp}.run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func (p provisioner) run(ctx context.Context) error {
	for ctx.Err() == nil {
		claims, err := p.Cluster.Client.CoreV1().PersistentVolumeClaims("").Watch(ctx, metav1.ListOptions{})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the lab ends
		}
		if err != nil {
			return fmt.Errorf("watch claims: %w", err)
		}
		for e := range claims.ResultChan() {
			claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
			if !ok || !p.isAsked(claim) {
				continue
			}
			if err := p.answer(ctx, claim); err != nil && ctx.Err() == nil {
				return fmt.Errorf("provision the claim %s/%s: %w", claim.Namespace, claim.Name, err)
			}
		}
	}
	return nil
}

func (p provisioner) isAsked(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && claim.Annotations[storagehelpers.AnnSelectedNode] != "" &&
		claim.Annotations[storagehelpers.AnnStorageProvisioner] == p.class.Name
}

func (p provisioner) answer(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	core := p.Cluster.Client.CoreV1()
	if p.givesUp != "" {
		return p.giveUp(ctx, claim)
	}
	node, err := core.Nodes().Get(ctx, claim.Annotations[storagehelpers.AnnSelectedNode], metav1.GetOptions{})
	if err != nil {
		return err
	}
	spec := ClaimSpec{
		Namespace: claim.Namespace, Name: claim.Name, Class: p.class.Name, Source: &p.source, AccessModes: claim.Spec.AccessModes,
		Size:       claim.Spec.Resources.Requests.Storage().Value(),
		Filesystem: claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeFilesystem,
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: p.class.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Labels[p.class.TopologyKey]},
			}},
		}}}},
	}
	volume := p.Volume(spec)
	volume.Annotations = map[string]string{storagehelpers.AnnDynamicallyProvisioned: p.class.Name}
	volume.Spec.ClaimRef.UID = claim.UID
	_, err = core.PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (p provisioner) giveUp(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	core, now := p.Cluster.Client.CoreV1(), metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", claim.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: p.givesUp,
		FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: p.class.Name},
	}
	if _, err := core.Events(claim.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return err
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{storagehelpers.AnnSelectedNode: nil},
	}}) // null can always be marshalled
	claims := core.PersistentVolumeClaims(claim.Namespace)
	_, err := claims.Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// DelayedClaim is a claim of a class that the provisioner makes a volume for.
func (l *Lab) DelayedClaim(ctx context.Context, c DelayedClass, spec ClaimSpec) error {
	if err := l.AddNamespace(ctx, spec.Namespace); err != nil {
		return err
	}
	spec.Class = c.Name
	claim := l.Claim(spec)
	claim.Spec.VolumeName = ""
	_, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	return err
}
