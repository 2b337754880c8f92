package claim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// checkAccess compares the access mode with the modes of the bound claim, which may be more than it requested.
func (n Need) checkAccess(claim *corev1.PersistentVolumeClaim, readOnly bool) error {
	have := claim.Status.AccessModes
	has := func(modes ...corev1.PersistentVolumeAccessMode) bool {
		return slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return slices.Contains(have, m) })
	}
	refuse := func(why string) error {
		return source.Errorf("", "the %s with access modes %s can't be used %s: %s", refOf(claim), modeNames(have), n.AccessMode, why)
	}
	if readOnly && n.AccessMode != volume.ReadShared {
		return refuse("its PersistentVolume is read-only; use access_mode read-shared")
	}
	switch n.AccessMode {
	case volume.WriteExclusive:
		if !has(corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany) {
			return refuse("it needs ReadWriteOnce, ReadWriteOncePod or ReadWriteMany; use access_mode read-shared, or such a claim")
		}
	case volume.WriteShared:
		if has(corev1.ReadWriteMany) {
			return nil
		}
		if !has(corev1.ReadWriteOnce) {
			return refuse("many machines that write need ReadWriteMany; use access_mode write-exclusive or read-shared, or such a claim")
		}
		if len(n.Nodes) > 1 {
			return refuse(fmt.Sprintf("on %d hosts it needs ReadWriteMany; this claim allows one host", len(n.Nodes)))
		}
	case volume.ReadShared:
		if has(corev1.ReadOnlyMany, corev1.ReadWriteMany) {
			return nil
		}
		if !has(corev1.ReadWriteOnce, corev1.ReadWriteOncePod) {
			return refuse("it needs ReadOnlyMany or ReadWriteMany")
		}
		if len(n.Nodes) > 1 {
			return refuse(fmt.Sprintf("on %d hosts it needs ReadOnlyMany or ReadWriteMany; this claim allows one host", len(n.Nodes)))
		}
	default:
		return refuse("there is no such access mode")
	}
	return nil
}

func modeNames(modes []corev1.PersistentVolumeAccessMode) string {
	if len(modes) == 0 {
		return "(none)"
	}
	names := make([]string, 0, len(modes))
	for _, m := range modes {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// checkNodes checks that the volume can be reached from every host.
func (n Need) checkNodes(ctx context.Context, r Reader, pv *corev1.PersistentVolume) error {
	if pv.Spec.NodeAffinity == nil {
		return nil
	}
	var refused []string
	for _, name := range n.Nodes {
		labels, err := nodeLabels(ctx, r, name)
		if err != nil {
			return err
		}
		if storagehelpers.CheckNodeAffinity(pv, labels) != nil {
			refused = append(refused, name)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return source.Errorf("", "the PersistentVolume %s can't be used on %s: its nodeAffinity does not admit that node; "+
		"take the host out of the binding, or set kubernetes_node when it is another Kubernetes node than its key says",
		pv.Name, strings.Join(refused, ", "))
}

// nodeLabels returns the labels of the Kubernetes node. If the host is no node, or nodes may not be read, it is the label that every node
// has.
func nodeLabels(ctx context.Context, r Reader, name string) (map[string]string, error) {
	node, err := r.Node(ctx, name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return map[string]string{corev1.LabelHostname: name}, nil
	}
	if err != nil {
		return nil, err
	}
	return node.Labels, nil
}
