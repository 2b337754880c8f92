package claim

import "github.com/virtclaim/terraform-provider-virtclaim/internal/source"

// The attributes beside the claim's name, for errors.
const (
	forceBlockAttribute = "force_block"
	mountPathAttribute  = "mount_path"
	devicePathAttribute = "device_path"
	attachAttribute     = "attach"
	sharedAttribute     = "shared_folder"
	monitorsAttribute   = "monitors"
	configMapAttribute  = "ceph_config_map"
	userAttribute       = "uid"
)

// Options are the options of a claim beside its name. The zero value has none.
type Options struct {
	// ForceBlock exposes the raw device of a Filesystem volume to the guest: for an old static volume that predates volumeMode.
	ForceBlock bool
	// MountPath is where every host has a Filesystem volume mounted, and DevicePath where it has a Block volume as a device; both may have
	// fields of the PersistentVolume in braces (JSONPath). Both are empty if QEMU opens the volume itself.
	MountPath, DevicePath string
	// Attach has Kubernetes mount a Filesystem volume on each host, which is a node of the cluster.
	Attach bool
	// SharedFolder gives machines the folder of a Filesystem volume instead of the disk.img in it.
	SharedFolder bool
	// User and Group are the numeric identity that QEMU opens an NFS volume with; empty for root.
	User, Group string
	// Monitors replace the monitors of a Ceph volume, which hosts often can't reach; they have the forms of source.ParseMonitors.
	Monitors []string
	// ConfigMap is where ceph-csi keeps the monitors of its clusters.
	ConfigMap ConfigMapRef
}

// ConfigMapRef names a key of a ConfigMap. Empty parts have the defaults of ceph-csi or Rook.
type ConfigMapRef struct{ Namespace, Name, Key string }

// isOnHosts reports whether the hosts have the volume, as a device or mounted, so that QEMU does not open it over the network.
func (o Options) isOnHosts() bool { return o.MountPath != "" || o.DevicePath != "" || o.Attach }

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
	if q.options.MountPath != "" && q.options.DevicePath != "" {
		return source.Errorf(devicePathAttribute, "conflicts with mount_path: the hosts have a volume as a device, or mounted")
	}
	if q.options.SharedFolder && (q.isBlock() || q.options.ForceBlock || q.options.DevicePath != "") {
		return source.Errorf(sharedAttribute, "machines can share the folder of a volume with volumeMode Filesystem, but no device: use "+
			"such a claim, without force_block and device_path")
	}
	if (q.options.User != "" || q.options.Group != "") && (!isNFS(q.pv) || q.options.isOnHosts()) {
		return source.Errorf(userAttribute, "the PersistentVolume %s is not opened by QEMU's NFS client, which alone takes a uid and a "+
			"gid: remove them", q.pv.Name)
	}
	return nil
}
