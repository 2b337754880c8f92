package claim

import (
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// target is an iSCSI volume of any type. names are the type's names of the attributes.
type target struct {
	portal    string
	portals   []string
	iqn       string
	lun       int64
	initiator string
	iface     string
	names     struct{ portal, initiator, iface string }
	login     *source.Login
}

// inTreeISCSI translates the in-tree type. QEMU opens the target itself and does no discovery, so chapAuthDiscovery does
// not concern it.
func (q request) inTreeISCSI() (location, error) {
	s := q.pv.Spec.ISCSI
	t := target{portal: s.TargetPortal, portals: s.Portals, iqn: s.IQN, lun: int64(s.Lun), iface: s.ISCSIInterface}
	t.names.portal, t.names.initiator, t.names.iface = "targetPortal", "initiatorName", "iscsiInterface"
	if s.InitiatorName != nil {
		t.initiator = *s.InitiatorName
	}
	if s.SessionCHAPAuth {
		if s.SecretRef == nil || s.SecretRef.Name == "" {
			return location{}, source.Errorf("",
				"the PersistentVolume %s has chapAuthSession but no secretRef to take the credentials from", q.pv.Name)
		}
		t.login = &source.Login{Form: source.CHAP, Secret: q.secretRef(s.SecretRef)}
	}
	return q.iscsi(t)
}

func (q request) iscsi(t target) (location, error) {
	warnings, err := q.device("iSCSI device")
	if err != nil {
		return location{}, err
	}
	if t.iface != "" && t.iface != "default" {
		return location{}, source.Errorf("", "the PersistentVolume %s wants the iSCSI interface %q, but QEMU logs in over plain TCP: "+
			"only %s default works", q.pv.Name, t.iface, t.names.iface)
	}
	portal, err := source.ParsePortal(t.portal)
	if err != nil {
		return location{}, q.ofVolume(t.names.portal, err)
	}
	iqn, err := source.ISCSIName(t.iqn)
	if err != nil {
		return location{}, q.ofVolume("iqn", err)
	}
	if err := source.CheckLUN(t.lun); err != nil {
		return location{}, q.ofVolume("lun", err)
	}
	initiator := ""
	if t.initiator != "" {
		if initiator, err = source.ISCSIName(t.initiator); err != nil {
			return location{}, q.ofVolume(t.names.initiator, err)
		}
	}
	return location{
		volume: source.ISCSIVolume(portal, iqn, t.lun, initiator, nil), login: t.login,
		warnings: append(warnings, q.morePortals(t, portal)...),
	}, nil
}

// morePortals returns a warning if there are other portals than the used one.
func (q request) morePortals(t target, used source.Portal) []string {
	for _, other := range t.portals {
		if p, err := source.ParsePortal(other); err != nil || p != used {
			return []string{fmt.Sprintf("The PersistentVolume %s has more than one iSCSI portal. QEMU does no multipathing: "+
				"only the first one, %s, is used.", q.pv.Name, used)}
		}
	}
	return nil
}
