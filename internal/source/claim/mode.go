package claim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// diskImage is the path of a Filesystem volume's image in its root: a raw image, 1:1 with the virtual disk.
const diskImage = "/disk.img"

func (q request) isBlock() bool { return mode(q.pv.Spec.VolumeMode) == corev1.PersistentVolumeBlock }

// device refuses a volume on a device, such as an iSCSI one, with volumeMode Filesystem: a guest that wrote to the device would destroy its
// filesystem. With force_block the user asserts that there is none.
func (q request) device(what string) (warnings []string, err error) {
	switch {
	case q.isBlock() && q.options.ForceBlock:
		return nil, source.Errorf(forceBlockAttribute, "the %s has volumeMode Block already: remove force_block", refOf(q.claim))
	case q.isBlock():
		return nil, nil
	case q.options.ForceBlock:
		return []string{fmt.Sprintf("The %s has volumeMode Filesystem, but force_block gives the raw %s of its PersistentVolume %s to "+
			"virtual machines. A filesystem on it is destroyed by the first of them that writes.", refOf(q.claim), what, q.pv.Name)}, nil
	}
	return nil, source.Errorf("", "the %s has volumeMode Filesystem: a machine that wrote to the %s of its PersistentVolume %s would "+
		"destroy that. Use a claim with volumeMode Block, or mount_path on one host. "+guide.See+
		"troubleshooting#claims-with-a-filesystem", refOf(q.claim), what, q.pv.Name)
}

// folder refuses volumeMode Block, and force_block, for a volume that is a folder of a filesystem.
func (q request) folder() error {
	if q.options.ForceBlock {
		return source.Errorf(forceBlockAttribute, "the PersistentVolume %s is of the type %s, which has no raw device of its own that "+
			"could be given to a virtual machine: remove force_block", q.pv.Name, typeOf(q.pv))
	}
	if q.isBlock() {
		return source.Errorf("", "the %s has volumeMode Block, but its PersistentVolume %s is of the type %s, which is a folder: "+
			"the claim and the volume must have volumeMode Filesystem, with the image in disk.img", refOf(q.claim), q.pv.Name, typeOf(q.pv))
	}
	return nil
}

// mounted returns what machines get of the folder where every host has the volume mounted, for volumes of any type.
func (q request) mounted() (location, error) {
	path, err := q.expand(mountPathAttribute, strings.TrimSuffix(q.options.MountPath, "/"))
	if err != nil {
		return location{}, err
	}
	return q.mountedAt(mountPathAttribute, path)
}

// AttachedPrefix begins the folder at which hosts have a volume that Kubernetes has mounted; its UID follows. It is the same on all hosts.
const AttachedPrefix = "/run/libvirt/virtclaim/claim-"

// attached returns the disk.img in the folder where a binding mounts what Kubernetes has mounted.
func (q request) attached() (location, error) {
	if q.pv.Spec.HostPath != nil {
		return location{}, source.Errorf(attachAttribute, "the PersistentVolume %s is of the type hostPath, which Kubernetes does not "+
			"mount: remove attach", q.pv.Name)
	}
	return q.mountedAt(attachAttribute, AttachedPrefix+string(q.pv.UID))
}

func (q request) mountedAt(attribute, path string) (location, error) {
	switch {
	case q.isBlock():
		return location{}, source.Errorf(attribute, "the %s has volumeMode Block, so there is nothing to mount: remove %s",
			refOf(q.claim), attribute)
	case q.options.ForceBlock:
		return location{}, source.Errorf(forceBlockAttribute, "conflicts with %s: the volume has a filesystem, or it has none", attribute)
	}
	found := q.inFolder(path)
	if !q.isSharedFilesystem() && !isReadOnly(q.pv) {
		found.oneMount = attribute
	}
	return found, nil
}

// inFolder returns the disk.img in a folder of the hosts, or the folder itself if machines share it.
func (q request) inFolder(folder string) location {
	if q.options.SharedFolder {
		return location{volume: source.FolderVolume(folder)}
	}
	return location{volume: source.FileVolume(join(folder), nil), diskImage: true}
}

// checkFolder refuses a volume that machines can't share, because the hosts don't have it as a folder.
func (q request) checkFolder(found location) error {
	if q.options.SharedFolder && !found.volume.Images[0].IsFolder() {
		return source.Errorf(sharedAttribute, "the hosts have no folder of the PersistentVolume %s of the %s, which QEMU opens itself "+
			"over the network: have it mounted there (attach = true), or mount it and say where with mount_path", q.pv.Name, refOf(q.claim))
	}
	return nil
}

// ofVolume adds the part of the PersistentVolume that an error is about.
func (q request) ofVolume(what string, err error) error {
	return source.Errorf("", "%s of the PersistentVolume %s: %w", what, q.pv.Name, err)
}
