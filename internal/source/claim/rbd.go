package claim

import (
	"cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// inTreeRBD translates the in-tree type. The API server fills in the defaults; they are Kubernetes' own.
func (q request) inTreeRBD() (location, error) {
	s := q.pv.Spec.RBD
	if named(s.SecretRef) == nil {
		return location{}, source.Errorf("", "the PersistentVolume %s has no secretRef: its key is in the file %q on the Kubernetes nodes, "+
			"where virtclaim can't read it; put the key into a Secret, under key, and name it in secretRef", q.pv.Name, s.Keyring)
	}
	user := cmp.Or(s.RadosUser, "admin")
	if err := source.CheckCephUser(user); err != nil {
		return location{}, q.ofVolume("user", err)
	}
	monitors := q.options.Monitors
	if len(monitors) == 0 {
		monitors = s.CephMonitors
	}
	image := source.RBDImage{Pool: cmp.Or(s.RBDPool, "rbd"), Image: s.RBDImage}
	return q.rbd(monitors, image, source.Login{Form: source.CephKey, Secret: q.secretRef(s.SecretRef), Username: user})
}

func (q request) rbd(monitors []string, image source.RBDImage, login source.Login) (location, error) {
	warnings, err := q.device("RBD image")
	if err != nil {
		return location{}, err
	}
	if wrong := image.Check(); len(wrong) > 0 {
		return location{}, q.ofVolume("the "+wrong[0].Attribute, wrong[0].Err)
	}
	servers, err := source.ParseMonitors(monitors)
	switch {
	case err != nil && len(q.options.Monitors) > 0:
		return location{}, source.Errorf(monitorsAttribute, "%w", err)
	case err != nil:
		return location{}, q.ofVolume("monitors", err)
	}
	found := location{volume: source.RBDVolume(servers, image, nil), login: &login, warnings: warnings}
	if hint := image.Hint(); hint != "" {
		found.hints = []string{hint}
	}
	return found, nil
}
