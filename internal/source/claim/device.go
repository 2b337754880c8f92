package claim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// identifying are the volume attributes by which CSI drivers find a device, in lower case.
var identifying = []string{"wwn", "wwid", "serial", "serialnumber", "deviceuuid", "nguid"}

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
	return location{volume: source.BlockVolume(path, nil), warnings: warnings, device: q.proof()}, nil
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
			if value != "" && slices.Contains(identifying, strings.ToLower(name)) {
				d.IDs = append(d.IDs, value)
			}
		}
	}
	slices.Sort(d.IDs)
	return d
}
