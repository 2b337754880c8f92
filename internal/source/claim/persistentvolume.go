package claim

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// request is a PersistentVolume to translate, its claim, and the user's options.
type request struct {
	pv      *corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	options Options
}

// location is the storage of a PersistentVolume, before any secret is read.
type location struct {
	volume volume.Volume
	// readOnly is whether the PersistentVolume must not be written.
	readOnly bool
	// diskImage is source.Resolved.DiskImage.
	diskImage bool
	// device is source.Resolved.Device.
	device *source.Device
	// oneHost is whether each host has another volume under this path.
	oneHost bool
	// oneMount is the attribute by which the volume is mounted, if its filesystem is written to and not known to support mounts on several
	// hosts.
	oneMount string
	// login is the location of the credentials; nil if the storage needs none.
	login    *source.Login
	warnings []string
	// hints are warnings for the creation of a binding. A refresh does not repeat them, because a bound volume has proven to work.
	hints []string
}

// locate translates a PersistentVolume. It reads the objects that the volume references, but no secret.
func (q request) locate(ctx context.Context, r ObjectReader) (location, error) {
	if err := q.check(); err != nil {
		return location{}, err
	}
	found, err := q.translate(ctx, r)
	if err == nil {
		err = q.checkFolder(found)
	}
	if err != nil {
		return location{}, err
	}
	found.volume.Capacity = capacity(q.claim)
	found.readOnly = isReadOnly(q.pv)
	return found, nil
}

func (q request) translate(ctx context.Context, r ObjectReader) (location, error) {
	s := q.pv.Spec
	switch {
	case q.options.MountPath != "":
		return q.mounted()
	case q.options.Attach:
		return q.attached()
	case q.options.DevicePath != "":
		return q.hostDevice()
	case s.ISCSI != nil:
		return q.inTreeISCSI()
	case isRBD(q.pv):
		return q.rbd(ctx, r)
	case s.NFS != nil:
		return q.inTreeNFS()
	case s.Glusterfs != nil:
		return q.glusterfs(ctx, r)
	case s.Local != nil:
		return q.local()
	case s.HostPath != nil:
		return q.hostPath()
	case s.FC != nil:
		return q.fibreChannel()
	case s.CSI != nil:
		return q.csi()
	}
	return location{}, q.unsupported()
}

// unsupported is the error of a type that virtclaim does not support.
func (q request) unsupported() error {
	works := "name its device on the hosts with device_path, as in \"/dev/longhorn/{.spec.csi.volumeHandle}\""
	if !q.isBlock() {
		works = "set attach = true if the host is a node of the cluster, or mount it there (mount_path); several hosts need a claim that " +
			"is ReadWriteMany"
	}
	return source.Errorf("", "how a host reaches the PersistentVolume %s of the %s (%s, volumeMode %s) is not known: %s",
		q.pv.Name, refOf(q.claim), typeOf(q.pv), mode(q.pv.Spec.VolumeMode), works)
}

// typeOf returns the type's name in the manifest, and for CSI the driver's.
func typeOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI != nil {
		return "csi with the driver " + pv.Spec.CSI.Driver
	}
	if name, _ := sourceOf(pv); name != "" {
		return name
	}
	return "(none)"
}

// isReadOnly checks the mount options and the field ReadOnly, which nearly every type has.
func isReadOnly(pv *corev1.PersistentVolume) bool {
	if slices.Contains(pv.Spec.MountOptions, "ro") {
		return true
	}
	name, s := sourceOf(pv)
	if name == "" {
		return false
	}
	flag := s.FieldByName("ReadOnly")
	if flag.Kind() == reflect.Pointer {
		flag = flag.Elem()
	}
	return flag.Kind() == reflect.Bool && flag.Bool()
}

// sourceOf returns the volume's type by name, and its fields; the name is empty if there is none.
func sourceOf(pv *corev1.PersistentVolume) (name string, s reflect.Value) {
	sources := reflect.ValueOf(pv.Spec.PersistentVolumeSource)
	for i := range sources.NumField() {
		if !sources.Field(i).IsNil() {
			name, _, _ := strings.Cut(sources.Type().Field(i).Tag.Get("json"), ",")
			return name, sources.Field(i).Elem()
		}
	}
	return "", reflect.Value{}
}

// capacity returns the actual capacity of the bound claim, in bytes; nil if it is unknown.
func capacity(claim *corev1.PersistentVolumeClaim) *int64 {
	q, ok := claim.Status.Capacity[corev1.ResourceStorage]
	if !ok {
		return nil
	}
	bytes := q.Value()
	return &bytes
}
