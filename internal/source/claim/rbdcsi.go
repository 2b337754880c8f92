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

// cephCluster returns the volume's cluster from the first ConfigMap that has it. Its error says which were asked, and how each answered.
func (q request) cephCluster(ctx context.Context, r ObjectReader) (cephCluster, error) {
	id, err := q.attribute("clusterID")
	if err != nil {
		return cephCluster{}, err
	}
	var asked []string
	missing := true
	for _, ref := range q.configMaps() {
		config, err := r.ConfigMap(ctx, ref.Namespace, ref.Name)
		var found cephCluster
		switch {
		case err == nil:
			found, err = findCluster(config.Data[ref.Key], id)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return cephCluster{}, err
		}
		if err == nil {
			return found, nil
		}
		missing = missing && apierrors.IsNotFound(err)
		asked = append(asked, fmt.Sprintf("%s/%s, key %s, %s", ref.Namespace, ref.Name, ref.Key, answer(err)))
	}
	const text = "no ConfigMap has the monitors of the Ceph cluster %q: %s. Name one with ceph_config_map, or the monitors with monitors"
	if missing {
		return cephCluster{}, source.NotReadyf(text, id, strings.Join(asked, "; "))
	}
	return cephCluster{}, source.Errorf(configMapAttribute, text, id, strings.Join(asked, "; "))
}

// answer is how a ConfigMap answered, in few words.
func answer(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist"
	case apierrors.IsForbidden(err):
		return "may not be read (permit it)"
	}
	return err.Error()
}

// configMaps returns where the clusters of the driver are: as it is configured, or else Rook's ConfigMap, which is empty since Rook has the
// operator of ceph-csi, that one's in the namespace of the driver, with which its name begins, and that of ceph-csi beside the secret.
func (q request) configMaps() (refs []ConfigMapRef) {
	const name, key = "ceph-csi-config", "config.json"
	if driver, ok := strings.CutSuffix(q.pv.Spec.CSI.Driver, "."+cephDriver); ok {
		refs = []ConfigMapRef{{driver, "rook-ceph-csi-config", "csi-cluster-config-json"}, {driver, name, key}}
	}
	beside := ConfigMapRef{q.secretRef(q.pv.Spec.CSI.NodeStageSecretRef).Namespace, name, key}
	isTenants := len(refs) > 0 && beside.Namespace == q.claim.Namespace
	if !isTenants && !slices.Contains(refs, beside) {
		refs = append(refs, beside)
	}
	given := q.options.ConfigMap
	if given == (ConfigMapRef{}) {
		return refs
	}
	n := max(0, slices.IndexFunc(refs, func(r ConfigMapRef) bool { return r.Name == given.Name }))
	return []ConfigMapRef{{
		cmp.Or(given.Namespace, refs[n].Namespace), cmp.Or(given.Name, refs[n].Name), cmp.Or(given.Key, refs[n].Key),
	}}
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
