package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// CSIDriver is the name of the CSI driver of nodes. Its volumes are folders of the machine, which it mounts for pods.
const CSIDriver = "csi.virtclaim.test"

// FolderClaim is a claim of a file system whose volume is of CSIDriver: pods, and host-a, see a mount of the folder.
func FolderClaim(namespace, name, folder string, size int64, modes ...corev1.PersistentVolumeAccessMode) ClaimSpec {
	return ClaimSpec{
		Namespace: namespace, Name: name, Filesystem: true, Size: size, AccessModes: modes,
		Source: &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: CSIDriver, VolumeHandle: namespace + "/" + name, VolumeAttributes: map[string]string{"folder": folder},
		}},
	}
}

// KubeletMount is the path of a claim's file system for a pod, on the node and on host-a.
func KubeletMount(pod *corev1.Pod, claim ClaimSpec) string {
	return fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~csi/%s/mount", pod.UID, claim.VolumeName())
}

// csiDriver is the driver's process.
type csiDriver struct{ *daemon }

// StartCSI starts CSIDriver on the node, at the first call, and waits until kubelet knows it. It ends with the node.
func (n *Node) StartCSI(ctx context.Context) error {
	_, err := n.csi.get(ctx, func(ctx context.Context) (csiDriver, error) {
		program, err := artefact.CSIDriver(ctx, n.lab.cache, n.lab.log)
		if err != nil {
			return csiDriver{}, err
		}
		no, policy := false, storagev1.NoneFSGroupPolicy
		object := &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: CSIDriver},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &no, FSGroupPolicy: &policy},
		}
		_, err = n.lab.Cluster.Client.StorageV1().CSIDrivers().Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return csiDriver{}, fmt.Errorf("make CSIDriver %s: %w", CSIDriver, err)
		}
		driver := csiDriver{n.run("csi", fmt.Sprintf("%s -name %s -node %s", quote(program), CSIDriver, n.Name))}
		if err := driver.await(ctx, n.knowsCSI); err != nil {
			return driver, fmt.Errorf("start the CSI driver: %w", err)
		}
		return driver, nil
	})
	return err
}

// knowsCSI is an error until kubelet has registered the driver.
func (n *Node) knowsCSI(ctx context.Context) error {
	node, err := n.lab.Cluster.Client.StorageV1().CSINodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == CSIDriver }) {
		return errors.New("kubelet has not registered it")
	}
	return nil
}

func (d csiDriver) close(ctx context.Context) error {
	if d.daemon == nil {
		return nil
	}
	return d.end(ctx, "KILL")
}
