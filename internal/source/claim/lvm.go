package claim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// lvmName has the characters that LVM accepts in the name of a volume group or logical volume.
var lvmName = regexp.MustCompile(`^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$`)

// openEBSLVM translates a volume of OpenEBS LVM LocalPV, whose handle is the name of the logical volume. It is on one node only, which the
// volume's nodeAffinity names.
func (q request) openEBSLVM() (location, error) {
	group, err := q.attribute("openebs.io/volgroup")
	if err != nil {
		return location{}, err
	}
	if err := checkLVMName(group); err != nil {
		return location{}, q.ofVolume("openebs.io/volgroup", err)
	}
	name := q.pv.Spec.CSI.VolumeHandle
	if err := checkLVMName(name); err != nil {
		return location{}, q.ofVolume("volumeHandle", err)
	}
	return q.kernelDevice("logical volume", "/dev/", group, name)
}

// openEBSZFS translates a volume of OpenEBS ZFS LocalPV, which is on one node, too. A Block volume is a zvol, and the pool may be a dataset
// in one.
func (q request) openEBSZFS() (location, error) {
	pool, err := q.attribute("openebs.io/poolname")
	if err != nil {
		return location{}, err
	}
	return q.kernelDevice("zvol", "/dev/zvol/", pool, q.pv.Spec.CSI.VolumeHandle)
}

// linstor translates a volume of LINSTOR, which is a DRBD resource of one volume. DRBD itself lets one host write, unless it is told
// otherwise.
func (q request) linstor() (location, error) {
	return q.kernelDevice("DRBD device", "/dev/drbd/by-res/", q.pv.Spec.CSI.VolumeHandle, "0")
}

// kernelDevice returns the device that a driver of the hosts' kernels names by the volume, if it has no filesystem.
func (q request) kernelDevice(what, folder string, names ...string) (location, error) {
	if !q.isBlock() {
		return location{}, source.Errorf("", "the %s has volumeMode Filesystem, so there is a filesystem on the %s of its "+
			"PersistentVolume %s, which only kubelet mounts: the claim must have volumeMode Block, or else the host has the "+
			"filesystem mounted and mount_path says where", refOf(q.claim), what, q.pv.Name)
	}
	if _, err := q.device(what); err != nil {
		return location{}, err
	}
	path, err := exactPath(folder + strings.Join(names, "/"))
	if err != nil {
		return location{}, q.ofVolume("the device", err)
	}
	return location{volume: source.BlockVolume(path, nil)}, nil
}

func checkLVMName(name string) error {
	if !lvmName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%q is no name that LVM takes", name)
	}
	return nil
}
