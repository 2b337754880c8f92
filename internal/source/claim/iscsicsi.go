package claim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// csiISCSI translates a volume of csi-driver-iscsi (pkg/iscsi/iscsi.go has its attributes).
func (q request) csiISCSI() (location, error) {
	s := q.pv.Spec.CSI
	a := s.VolumeAttributes
	t, err := q.csiTarget("targetPortal", "iscsiInterface")
	if err != nil {
		return location{}, err
	}
	if t.portal, err = q.attribute("targetPortal"); err != nil {
		return location{}, err
	}
	if list := a["portals"]; list != "" && json.Unmarshal([]byte(list), &t.portals) != nil {
		return location{}, source.Errorf("", "the volume attribute portals of the PersistentVolume %s is no JSON list of portals",
			q.pv.Name)
	}
	t.initiator, t.names.initiator = a["initiatorName"], "initiatorName"
	if a["secret"] != "" {
		return location{}, source.Errorf("", "the PersistentVolume %s has its CHAP credentials in the volume attribute secret, where "+
			"all users can read them that may read volumes: move them to a Secret and name it in nodePublishSecretRef", q.pv.Name)
	}
	if a["sessionCHAPAuth"] == "true" {
		ref := named(s.NodePublishSecretRef, s.NodeStageSecretRef)
		if ref == nil {
			return location{}, source.Errorf("", "the PersistentVolume %s has sessionCHAPAuth but neither nodePublishSecretRef nor "+
				"nodeStageSecretRef to take the credentials from", q.pv.Name)
		}
		t.login = &source.Login{Form: source.CHAP, Secret: q.secretRef(ref)}
	}
	return q.attachedISCSI(t)
}

// democraticISCSI translates a volume of democratic-csi, whose driver has any name (src/driver/freenas/api.js and similar files create the
// attributes, src/driver/index.js reads them).
func (q request) democraticISCSI() (location, error) {
	s := q.pv.Spec.CSI
	t, err := q.csiTarget("portal", "interface")
	if err != nil {
		return location{}, err
	}
	if list := s.VolumeAttributes["portals"]; list != "" {
		for _, portal := range strings.Split(list, ",") {
			t.portals = append(t.portals, strings.TrimSpace(portal))
		}
	}
	t.portal = strings.TrimSpace(s.VolumeAttributes["portal"])
	if t.portal == "" && len(t.portals) > 0 {
		t.portal, t.names.portal = t.portals[0], "portals"
	}
	if ref := named(s.NodeStageSecretRef); ref != nil {
		t.login = &source.Login{Form: source.OptionalCHAP, Secret: q.secretRef(ref)}
	}
	return q.attachedISCSI(t)
}

// csiTarget has the attributes with the same name in both drivers.
func (q request) csiTarget(portal, iface string) (target, error) {
	t := target{iface: q.pv.Spec.CSI.VolumeAttributes[iface]}
	t.names.portal, t.names.iface = portal, iface
	lun, err := q.attribute("lun")
	if err != nil {
		return target{}, err
	}
	if t.lun, err = strconv.ParseInt(lun, 10, 64); err != nil {
		return target{}, q.ofVolume("lun", fmt.Errorf("%q is no number", lun))
	}
	t.iqn, err = q.attribute("iqn")
	return t, err
}

// attachedISCSI is for volumes that a CSI driver attaches: an array may hide a unit from initiators without a VolumeAttachment, which
// exists only for nodes that run a pod with the volume.
func (q request) attachedISCSI(t target) (location, error) {
	found, err := q.iscsi(t)
	found.hints = []string{fmt.Sprintf("The PersistentVolume %s belongs to the CSI driver %s. Its array may hide the logical unit from "+
		"all but the nodes that the driver has attached it to (VolumeAttachment). If a host can log in but finds no unit %d, permit "+
		"the host's initiator at the array.", q.pv.Name, q.pv.Spec.CSI.Driver, t.lun)}
	return found, err
}

// named returns the first reference with a name.
func named(refs ...*corev1.SecretReference) *corev1.SecretReference {
	for _, ref := range refs {
		if ref != nil && ref.Name != "" {
			return ref
		}
	}
	return nil
}
