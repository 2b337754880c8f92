package claim

import "github.com/virtclaim/terraform-provider-virtclaim/internal/source"

// The attributes beside the claim's name, for errors.
const (
	forceBlockAttribute = "force_block"
	mountPathAttribute  = "mount_path"
	monitorsAttribute   = "monitors"
	configMapAttribute  = "ceph_config_map"
)

// Options are the options of a claim beside its name. The zero value has none.
type Options struct {
	// ForceBlock exposes the raw device of a Filesystem volume to the guest: for an old static volume that predates volumeMode.
	ForceBlock bool
	// MountPath is where every host has a Filesystem volume mounted; empty if QEMU opens the volume itself.
	MountPath string
	// Monitors replace the monitors of a Ceph volume, which hosts often can't reach; they have the forms of source.ParseMonitors.
	Monitors []string
	// ConfigMap is where ceph-csi keeps the monitors of its clusters.
	ConfigMap ConfigMapRef
}

// ConfigMapRef names a key of a ConfigMap. Empty parts have the defaults of ceph-csi or Rook.
type ConfigMapRef struct{ Namespace, Name, Key string }

// check refuses options that have no effect for the volume.
func (q request) check() error {
	if len(q.options.Monitors) > 0 && !isRBD(q.pv) {
		return source.Errorf(monitorsAttribute, "the PersistentVolume %s is of the type %s, which has no Ceph monitors: remove monitors",
			q.pv.Name, typeOf(q.pv))
	}
	if q.options.ConfigMap != (ConfigMapRef{}) && !isCephCSI(q.pv) {
		return source.Errorf(configMapAttribute, "the PersistentVolume %s is of the type %s, but only volumes of ceph-csi have their "+
			"monitors in a ConfigMap: remove ceph_config_map", q.pv.Name, typeOf(q.pv))
	}
	return nil
}
