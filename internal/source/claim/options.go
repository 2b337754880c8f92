package claim

import "github.com/virtclaim/terraform-provider-virtclaim/internal/source"

// The attributes beside the claim's name, which errors blame.
const (
	forceBlockAttribute = "force_block"
	mountPathAttribute  = "mount_path"
	monitorsAttribute   = "monitors"
	configMapAttribute  = "ceph_config_map"
)

// Options are what the user says about a claim beside its name. The zero value says nothing.
type Options struct {
	// ForceBlock gives the raw device of a Filesystem volume to the guest: of an old static one that predates volumeMode.
	ForceBlock bool
	// MountPath is where every host has a Filesystem volume mounted; empty when QEMU is to open the volume itself.
	MountPath string
	// Monitors are used for a Ceph volume instead of those that the cluster names, which hosts often can't reach; they are
	// written as source.ParseMonitors reads them.
	Monitors []string
	// ConfigMap is where ceph-csi has the monitors of its clusters.
	ConfigMap ConfigMapRef
}

// ConfigMapRef names a key of a ConfigMap. What is empty is as ceph-csi or Rook have it by default.
type ConfigMapRef struct{ Namespace, Name, Key string }

// check refuses options that mean nothing for the volume, so that nobody relies on them.
func (q request) check() error {
	if len(q.options.Monitors) > 0 && !isRBD(q.pv) {
		return source.Errorf(monitorsAttribute, "the PersistentVolume %s is of the type %s, which has no Ceph monitors: remove monitors",
			q.pv.Name, typeOf(q.pv))
	}
	if q.options.ConfigMap != (ConfigMapRef{}) && !isCephCSI(q.pv) {
		return source.Errorf(configMapAttribute, "the PersistentVolume %s is of the type %s, but only volumes of ceph-csi have their monitors "+
			"in a ConfigMap: remove ceph_config_map", q.pv.Name, typeOf(q.pv))
	}
	return nil
}
