package claim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// cephCSI translates a volume of ceph-csi (docs/rbd/deploy.md and docs/static-pvc.md have its attributes).
func (q request) cephCSI(ctx context.Context, r ObjectReader) (cephImage, error) {
	s := q.pv.Spec.CSI
	if encrypted := s.VolumeAttributes["encrypted"]; encrypted != "" && encrypted != "false" {
		return cephImage{}, source.Errorf("", "the image of the PersistentVolume %s is encrypted by ceph-csi, which alone has the key: "+
			"a virtual machine would read and write over what is encrypted; use a StorageClass without encrypted", q.pv.Name)
	}
	ref := named(s.NodeStageSecretRef)
	if ref == nil {
		return cephImage{}, source.Errorf("", "the PersistentVolume %s has no nodeStageSecretRef to take the Ceph user and key from",
			q.pv.Name)
	}
	names, err := q.csiImage()
	if err != nil {
		return cephImage{}, err
	}
	image := cephImage{RBDImage: names, login: source.Login{Form: source.CephUser, Secret: q.secretRef(ref)}}
	if len(q.options.Monitors) > 0 && !q.isStatic() {
		return image, nil // ceph-csi records the namespace in volumes that it provisions
	}
	cluster, err := q.cephCluster(ctx, r)
	if err != nil && (len(q.options.Monitors) == 0 || !isMissing(err)) {
		return cephImage{}, err
	}
	image.monitors = cluster.Monitors
	image.Namespace = cmp.Or(image.Namespace, cluster.RBD.RadosNamespace, cluster.RadosNamespace)
	return image, nil
}

func isMissing(err error) bool {
	var missing *source.NotReady
	return errors.As(err, &missing)
}

// isStatic reports whether a volume was created manually, and not provisioned by ceph-csi.
func (q request) isStatic() bool { return q.pv.Spec.CSI.VolumeAttributes["staticVolume"] == "true" }

func (q request) csiImage() (i source.RBDImage, err error) {
	if i.Pool, err = q.attribute("pool"); err != nil {
		return i, err
	}
	i.Namespace = q.pv.Spec.CSI.VolumeAttributes["radosNamespace"]
	if q.isStatic() {
		i.Image = q.pv.Spec.CSI.VolumeHandle
		return i, nil
	}
	i.Image, err = q.attribute("imageName")
	return i, err
}

// cephCluster is ceph-csi's configuration of one cluster. Older versions have the namespace outside of rbd.
type cephCluster struct {
	ClusterID      string   `json:"clusterID"`
	Monitors       []string `json:"monitors"`
	RadosNamespace string   `json:"radosNamespace"`
	RBD            struct {
		RadosNamespace string `json:"radosNamespace"`
	} `json:"rbd"`
}

// cephCluster returns the volume's cluster from the ConfigMap.
func (q request) cephCluster(ctx context.Context, r ObjectReader) (cephCluster, error) {
	id, err := q.attribute("clusterID")
	if err != nil {
		return cephCluster{}, err
	}
	ref := q.configMap()
	config, err := r.ConfigMap(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return cephCluster{}, source.NotReadyf("the ConfigMap %s/%s with the monitors of the Ceph cluster %q does not exist: "+
			"name it with ceph_config_map, or the monitors themselves with monitors: %w", ref.Namespace, ref.Name, id, err)
	case apierrors.IsForbidden(err):
		return cephCluster{}, source.Errorf(configMapAttribute, "the ConfigMap %s/%s with the monitors of the Ceph cluster %q may not be "+
			"read: permit it, or name the monitors themselves with monitors: %w", ref.Namespace, ref.Name, id, err)
	case err != nil:
		return cephCluster{}, err
	}
	cluster, err := findCluster(config.Data[ref.Key], id)
	if err != nil {
		return cephCluster{}, source.Errorf(configMapAttribute, "the key %s of the ConfigMap %s/%s %w; name another one with "+
			"ceph_config_map, or the monitors themselves with monitors", ref.Key, ref.Namespace, ref.Name, err)
	}
	return cluster, nil
}

// configMap returns the configured ConfigMap, or else the default one: that of Rook, in the namespace in its drivers' prefix, or that of
// ceph-csi, in the namespace of its secret.
func (q request) configMap() ConfigMapRef {
	ref := q.options.ConfigMap
	byDefault := ConfigMapRef{
		Name: "ceph-csi-config", Key: "config.json",
		Namespace: q.secretRef(q.pv.Spec.CSI.NodeStageSecretRef).Namespace,
	}
	if rook, ok := strings.CutSuffix(q.pv.Spec.CSI.Driver, "."+cephDriver); ok {
		byDefault = ConfigMapRef{Name: "rook-ceph-csi-config", Key: "csi-cluster-config-json", Namespace: rook}
	}
	return ConfigMapRef{
		Namespace: cmp.Or(ref.Namespace, byDefault.Namespace),
		Name:      cmp.Or(ref.Name, byDefault.Name),
		Key:       cmp.Or(ref.Key, byDefault.Key),
	}
}

// findCluster finds a cluster in ceph-csi's configuration. Its errors continue a sentence that begins with the name of the key.
func findCluster(text, id string) (cephCluster, error) {
	if text == "" {
		return cephCluster{}, errors.New("is empty or missing")
	}
	var clusters []cephCluster
	if json.Unmarshal([]byte(text), &clusters) != nil {
		return cephCluster{}, errors.New("is no JSON list of Ceph clusters")
	}
	n := slices.IndexFunc(clusters, func(c cephCluster) bool { return c.ClusterID == id })
	if n < 0 {
		return cephCluster{}, fmt.Errorf("has no cluster %q", id)
	}
	if len(clusters[n].Monitors) == 0 {
		return cephCluster{}, fmt.Errorf("has no monitors of the cluster %q", id)
	}
	return clusters[n], nil
}
