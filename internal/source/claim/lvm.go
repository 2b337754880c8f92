package claim

import (
	"fmt"
	"regexp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// lvmName has the characters that LVM accepts in the name of a volume group or logical volume.
var lvmName = regexp.MustCompile(`^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$`)

// openEBSLVM translates a volume of OpenEBS LVM LocalPV, whose handle is the name of the logical volume. It is on one node only, which the
// volume's nodeAffinity names.
func (q request) openEBSLVM() (location, error) {
	if !q.isBlock() {
		return location{}, source.Errorf("", "the %s has volumeMode Filesystem, so there is a filesystem on the logical volume of its "+
			"PersistentVolume %s, which only kubelet mounts: the claim must have volumeMode Block, or else the host has the filesystem "+
			"mounted and mount_path says where", refOf(q.claim), q.pv.Name)
	}
	if _, err := q.device("logical volume"); err != nil {
		return location{}, err
	}
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
	return location{volume: source.BlockVolume("/dev/"+group+"/"+name, nil)}, nil
}

func checkLVMName(name string) error {
	if !lvmName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%q is no name that LVM takes", name)
	}
	return nil
}
