package claim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// wwidForm has the characters that udev keeps in the name of a link.
var wwidForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9#+.:=@_-]*$`)

// fibreChannel translates the type fc. A unit with a world wide identifier has the same link on every host, which udev creates and kubelet
// uses, too (findDiskWWIDs in pkg/volume/fc). The link of a unit with its target's ports has the PCI address of a host's adapter, which is
// unknown here.
func (q request) fibreChannel() (location, error) {
	warnings, err := q.device("Fibre Channel device")
	if err != nil {
		return location{}, err
	}
	wwids := q.pv.Spec.FC.WWIDs
	if len(wwids) == 0 {
		return location{}, source.Errorf("", "the PersistentVolume %s names its Fibre Channel unit by targetWWNs and lun, but the device "+
			"of that (/dev/disk/by-path/pci-…-fc-0x…-lun-…) is called otherwise on each host: name the unit by wwids, as "+
			"/lib/udev/scsi_id prints it, or bind the device directly with the source block", q.pv.Name)
	}
	wwid := strings.ReplaceAll(wwids[0], " ", "_") // as udev does
	if !wwidForm.MatchString(wwid) {
		return location{}, q.ofVolume("wwids",
			fmt.Errorf("%q is no world wide identifier; an example is 3600508b400105e210000900000490000", wwids[0]))
	}
	if len(wwids) > 1 {
		warnings = append(warnings, fmt.Sprintf("The PersistentVolume %s has more than one world wide identifier. Only the first one, %s, "+
			"is used.", q.pv.Name, wwids[0]))
	}
	return location{volume: source.BlockVolume("/dev/disk/by-id/scsi-"+wwid, nil), warnings: warnings}, nil
}
