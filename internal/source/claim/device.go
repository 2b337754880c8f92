package claim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// identifying are the volume attributes by which CSI drivers find a device, in lower case.
var identifying = []string{"wwn", "wwid", "wwids", "serial", "serialnumber", "deviceuuid", "nguid"}

// hostDevice returns the device as which every host has the volume, for volumes of any type.
func (q request) hostDevice() (location, error) {
	warnings, err := q.device("device")
	if err != nil {
		return location{}, err
	}
	path, err := q.expand(devicePathAttribute, q.options.DevicePath)
	if err != nil {
		return location{}, err
	}
	if !strings.HasPrefix(path, "/dev/") {
		return location{}, source.Errorf(devicePathAttribute, "%q is no device: it must begin with /dev/", path)
	}
	isEncrypted := q.isEncrypted()
	if isEncrypted && !strings.HasPrefix(path, "/dev/mapper/") {
		return location{}, source.Errorf(devicePathAttribute, "the PersistentVolume %s is encrypted by its driver, and a machine would "+
			"write over what is encrypted: use a StorageClass without that, or the decrypted device below /dev/mapper/", q.pv.Name)
	}
	d := q.proof()
	if isEncrypted {
		d.Least -= luksHeader
	}
	return location{volume: source.BlockVolume(path, nil), warnings: warnings, device: d}, nil
}

// luksHeader is by how much a decrypted device may be shorter than the encrypted one.
const luksHeader = 16 << 20

// isEncrypted reports whether the volume has an attribute by which drivers encrypt (ceph-csi, Longhorn, Portworx, LINSTOR, and others).
func (q request) isEncrypted() bool {
	csi := q.pv.Spec.CSI
	if csi == nil {
		return false
	}
	for name, value := range csi.VolumeAttributes {
		name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
		is := slices.Contains([]string{"encrypted", "encryption", "secure"}, name)
		if is && !slices.Contains([]string{"", "false", "no", "none", "0"}, strings.ToLower(value)) {
			return true
		}
	}
	return false
}

// proof is what the device of the volume must be. Storage rounds sizes up, and a volume that grows has its new size in the spec first.
func (q request) proof() *source.Device {
	d := &source.Device{}
	if least := capacity(q.claim); least != nil {
		d.Least = *least
	}
	size := q.pv.Spec.Capacity[corev1.ResourceStorage]
	most := max(size.Value(), d.Least)
	d.Most = most + most/10 + 1<<30
	if fc := q.pv.Spec.FC; fc != nil {
		d.IDs = append(d.IDs, fc.WWIDs...)
	}
	if csi := q.pv.Spec.CSI; csi != nil {
		for name, value := range csi.VolumeAttributes {
			if slices.Contains(identifying, strings.ToLower(name)) {
				d.IDs = append(d.IDs, strings.FieldsFunc(value, isListMark)...)
			}
		}
	}
	slices.Sort(d.IDs)
	return d
}

// isListMark is for attributes with several values, which drivers write as a list in JSON or with commas.
func isListMark(r rune) bool { return strings.ContainsRune(`[]", `, r) }
