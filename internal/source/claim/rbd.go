package claim

import (
	"cmp"
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// cephImage is a Ceph image of either type.
type cephImage struct {
	source.RBDImage
	monitors []string
	login    source.Login
}

// rbd translates a Ceph image, in-tree or of ceph-csi.
func (q request) rbd(ctx context.Context, r ObjectReader) (location, error) {
	warnings, err := q.device("RBD image")
	if err != nil {
		return location{}, err
	}
	image, err := q.cephImage(ctx, r)
	if err != nil {
		return location{}, err
	}
	if wrong := image.Check(); len(wrong) > 0 {
		return location{}, q.ofVolume("the "+wrong[0].Attribute, wrong[0].Err)
	}
	monitors, err := q.monitors(image.monitors)
	if err != nil {
		return location{}, err
	}
	found := location{volume: source.RBDVolume(monitors, image.RBDImage, nil), login: &image.login, warnings: warnings}
	if hint := image.Hint(); hint != "" {
		found.hints = []string{hint}
	}
	return found, nil
}

func (q request) cephImage(ctx context.Context, r ObjectReader) (cephImage, error) {
	if q.pv.Spec.RBD != nil {
		return q.inTreeRBD()
	}
	return q.cephCSI(ctx, r)
}

// monitors returns the user's monitors, or else those of the cluster.
func (q request) monitors(named []string) ([]volume.Server, error) {
	if len(q.options.Monitors) > 0 {
		servers, err := source.ParseMonitors(q.options.Monitors)
		if err != nil {
			return nil, source.Errorf(monitorsAttribute, "%w", err)
		}
		return servers, nil
	}
	servers, err := source.ParseMonitors(named)
	if err != nil {
		return nil, q.ofVolume("monitors", err)
	}
	return servers, nil
}

// inTreeRBD translates the in-tree type. The defaults are those of the API server.
func (q request) inTreeRBD() (cephImage, error) {
	s := q.pv.Spec.RBD
	if named(s.SecretRef) == nil {
		return cephImage{}, source.Errorf("", "the PersistentVolume %s has no secretRef: its key is in the file %q on the Kubernetes "+
			"nodes, where virtclaim can't read it; put the key into a Secret, under key, and name it in secretRef", q.pv.Name, s.Keyring)
	}
	user := cmp.Or(s.RadosUser, "admin")
	if err := source.CheckCephUser(user); err != nil {
		return cephImage{}, q.ofVolume("user", err)
	}
	return cephImage{
		RBDImage: source.RBDImage{Pool: cmp.Or(s.RBDPool, "rbd"), Image: s.RBDImage}, monitors: s.CephMonitors,
		login: source.Login{Form: source.CephKey, Secret: q.secretRef(s.SecretRef), Username: user},
	}, nil
}
