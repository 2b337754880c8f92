package claim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// delayingClass returns the class of a pending claim that Kubernetes binds only once a node is selected for it, if none is; nil for others.
// A class that does not exist, or that may not be read, is assumed to bind immediately.
func delayingClass(ctx context.Context, r ClassReader, claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	name := storagehelpers.GetPersistentVolumeClaimClass(claim)
	if name == "" || claim.Spec.VolumeName != "" || storagehelpers.IsDelayBindingProvisioning(claim) {
		return nil, nil
	}
	class, err := r.StorageClass(ctx, name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil, err
	}
	return class, nil
}

// checkSelecting refuses a claim for which no node may be selected, or for which that would be useless.
func (n Need) checkSelecting(ref Ref, class *storagev1.StorageClass) error {
	stays := fmt.Sprintf("the %s is Pending and stays so: its StorageClass %s has volumeBindingMode WaitForFirstConsumer, and ", ref,
		class.Name)
	const otherwise = "name a PersistentVolume in the claim's volumeName, or let a pod use the claim once"
	if class.Provisioner == storagehelpers.NotSupportedProvisioner {
		return source.NotReadyf("%sno provisioner: only the scheduler binds it, for a pod; %s", stays, otherwise)
	}
	if n.NotSelecting != "" {
		return source.NotReadyf("%sno pod uses the claim; remove %s, with which no node is selected for it, use a StorageClass with "+
			"volumeBindingMode Immediate, %s", stays, n.NotSelecting, otherwise)
	}
	return nil
}

// selectNode has a claim provisioned for the first host's node, as the scheduler does for a pod. It writes nothing if the hosts can't have
// one volume.
func (n Need) selectNode(ctx context.Context, w Watcher, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	if err := n.checkSelecting(refOf(claim), class); err != nil {
		return err
	}
	if _, err := w.Node(ctx, n.Nodes[0]); apierrors.IsNotFound(err) {
		return source.NotReadyf("the %s waits for a consumer, but %s is no Kubernetes node that could be selected for it: set "+
			"kubernetes_node of that host, let a pod use the claim once, or use a StorageClass with volumeBindingMode Immediate: %w",
			refOf(claim), n.Nodes[0], err)
	} else if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if err := n.checkTopology(ctx, w, refOf(claim), class.Provisioner); err != nil {
		return err
	}
	return reservation.SelectNode(ctx, w, reservation.Ref(refOf(claim)), string(claim.UID), n.Nodes[0])
}

// checkTopology refuses hosts for whose nodes a CSI driver makes different volumes.
func (n Need) checkTopology(ctx context.Context, w Watcher, ref Ref, driver string) error {
	var first map[string]string
	for i, name := range n.Nodes {
		topology, err := topologyOf(ctx, w, name, driver)
		switch {
		case apierrors.IsForbidden(err) && len(n.Nodes) == 1:
			return nil
		case apierrors.IsForbidden(err):
			return source.NotReadyf("whether all hosts of the binding can have one volume of the %s is not known: allow these credentials "+
				"to get nodes and csinodes (storage.k8s.io), or bind one host: %w", ref, err)
		case err != nil:
			return err
		case i == 0:
			first = topology
		case !maps.Equal(first, topology):
			return source.NotReadyf("the %s can't be provisioned for all hosts: the Kubernetes nodes %s and %s exclude each other, their "+
				"topologies are %q and %q; bind one of them, and add the other one later if the PersistentVolume admits it",
				ref, n.Nodes[0], name, first, topology)
		}
	}
	return nil
}

// topologyOf returns the labels of a node with which a CSI driver tells where a volume can be used. Other provisioners, and hosts that are
// no nodes, have none.
func topologyOf(ctx context.Context, w Watcher, name, driver string) (map[string]string, error) {
	topology := map[string]string{}
	runs, err := w.CSINode(ctx, name)
	if apierrors.IsNotFound(err) {
		return topology, nil
	}
	if err != nil {
		return nil, err
	}
	on := slices.IndexFunc(runs.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	if on < 0 {
		if _, err := w.CSIDriver(ctx, driver); err != nil {
			return topology, nil //nolint:nilerr // it is not known to be a CSI driver
		}
		return nil, source.NotReadyf("the CSI driver %s is not registered on the Kubernetes node %s, which could not have the claim's "+
			"volume: let its node plugin run there, or take the host out of the binding", driver, name)
	}
	node, err := w.Node(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, key := range runs.Spec.Drivers[on].TopologyKeys {
		topology[key] = node.Labels[key]
	}
	return topology, nil
}

// gaveUp reports whether a selection that an apply waits for was taken back. The watch may be behind, so the claim is read again.
func gaveUp(ctx context.Context, w Watcher, seen *corev1.PersistentVolumeClaim) bool {
	if !isPending(seen) || storagehelpers.IsDelayBindingProvisioning(seen) {
		return false
	}
	now, err := w.Claim(ctx, seen.Namespace, seen.Name)
	return err == nil && now.UID == seen.UID && isPending(now) && !storagehelpers.IsDelayBindingProvisioning(now)
}
