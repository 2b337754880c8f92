package claim_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// boundTo returns a claim that is bound to a volume of another type.
func boundTo(s corev1.PersistentVolumeSource, mode corev1.PersistentVolumeMode) *fixture {
	f := bound()
	f.claim.Spec.VolumeMode, f.pv.Spec.VolumeMode = &mode, &mode
	f.claim.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	f.pv.Spec.PersistentVolumeSource = s
	return f
}

// ceph returns a volume of ceph-csi, with its secret and its ConfigMap.
func ceph() *fixture {
	f := boundTo(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "rbd.csi.ceph.com", VolumeHandle: "x", NodeStageSecretRef: &corev1.SecretReference{Namespace: "ceph-csi", Name: "node"},
		VolumeAttributes: map[string]string{"clusterID": "c", "pool": "p", "imageName": "i"},
	}}, corev1.PersistentVolumeBlock)
	f.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ceph-csi", Name: "node", ResourceVersion: "42"},
		Data:       map[string][]byte{"userID": []byte("kube"), "userKey": []byte("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5")},
	}
	f.others = []runtime.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ceph-csi", Name: "ceph-csi-config"},
		Data:       map[string]string{"config.json": `[{"clusterID":"c","monitors":["192.0.2.1"]}]`},
	}}
	return f
}

func TestResolve_RefusesMeaninglessOptions(t *testing.T) {
	block, filesystem := corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem
	nfs := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b"}}
	local := corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/a"}}
	iscsi := bound().pv.Spec.PersistentVolumeSource
	lvm := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "local.csi.openebs.io", VolumeHandle: "v", VolumeAttributes: map[string]string{"openebs.io/volgroup": "g"},
	}}
	tests := []struct {
		name      string
		fixture   *fixture
		options   claim.Options
		attribute string
		want      string
	}{
		{"force_block of a Block claim", boundTo(iscsi, block), claim.Options{ForceBlock: true}, "force_block", "has volumeMode Block already"},
		{"force_block of a local device", boundTo(local, block), claim.Options{ForceBlock: true}, "force_block", "has volumeMode Block already"},
		{"force_block of a logical volume", boundTo(lvm, block), claim.Options{ForceBlock: true}, "force_block", "has volumeMode Block already"},
		{"force_block of NFS", boundTo(nfs, filesystem), claim.Options{ForceBlock: true}, "force_block", "the type nfs, which has no raw device"},
		{"force_block of a folder", boundTo(local, filesystem), claim.Options{ForceBlock: true}, "force_block", "the type local, which has no raw device"},
		{"force_block and mount_path", boundTo(iscsi, filesystem), claim.Options{ForceBlock: true, MountPath: "/a"}, "force_block", "conflicts with mount_path"},
		{"mount_path of a Block claim", boundTo(iscsi, block), claim.Options{MountPath: "/a"}, "mount_path", "nothing to mount"},
		{"relative mount_path", boundTo(nfs, filesystem), claim.Options{MountPath: "mnt"}, "mount_path", "no absolute path"},
		{"mount_path upwards", boundTo(nfs, filesystem), claim.Options{MountPath: "/mnt/../etc"}, "mount_path", "leads upwards"},
		{"mount_path with a line break", boundTo(nfs, filesystem), claim.Options{MountPath: "/mnt\n"}, "mount_path", "control character"},
		{"device_path and mount_path", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/a", MountPath: "/a"}, "device_path", "conflicts with mount_path"},
		{"device_path of a file system", boundTo(iscsi, filesystem), claim.Options{DevicePath: "/dev/a"}, "", "would destroy that"},
		{"device_path elsewhere", boundTo(iscsi, block), claim.Options{DevicePath: "/etc/passwd"}, "device_path", "must begin with /dev/"},
		{"relative device_path", boundTo(iscsi, block), claim.Options{DevicePath: "sdb"}, "device_path", "no absolute path"},
		{"device_path upwards", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/../etc/passwd"}, "device_path", "leads upwards"},
		{"device_path that is open", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/{.spec"}, "device_path", "unclosed action"},
		{"device_path of a missing field", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/{.spec.csi.volumeHandle}"}, "device_path", "volumeHandle is not found"},
		{"device_path of an empty field", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/{.spec.storageClassName}/a"}, "device_path", "empty part"},
		{"device_path of a whole part", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/{.spec.iscsi}"}, "device_path", "neither a text nor a number"},
		{"device_path of several fields", boundTo(iscsi, block), claim.Options{DevicePath: "/dev/{.spec.iscsi['iqn','targetPortal']}"}, "device_path", "must have one"},
		{"mount_path of a missing field", boundTo(nfs, filesystem), claim.Options{MountPath: "/mnt/{.spec.csi.volumeHandle}"}, "mount_path", "volumeHandle is not found (a field is"},
		{"uid of iSCSI", boundTo(iscsi, block), claim.Options{User: "107"}, "uid", "QEMU's NFS client"},
		{"monitors of iSCSI", boundTo(iscsi, block), claim.Options{Monitors: []string{"a"}}, "monitors", "the type iscsi, which has no Ceph monitors"},
		{"bad monitors", ceph(), claim.Options{Monitors: []string{"a:0"}}, "monitors", "between 1 and 65535"},
		{"a ConfigMap for NFS", boundTo(nfs, filesystem), claim.Options{ConfigMap: claim.ConfigMapRef{Name: "a"}}, "ceph_config_map", "only volumes of ceph-csi"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			need := exclusive
			need.Options = tt.options
			_, _, err := claim.Resolve(t.Context(), tt.fixture.client(t), golden, need)
			var wrong *source.Error
			if !errors.As(err, &wrong) || wrong.Attribute != tt.attribute || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an Error about %s with %q", err, tt.attribute, tt.want)
			}
		})
	}
}

func TestResolve_ReadOnlyVolume(t *testing.T) {
	block, filesystem := corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem
	secret := &corev1.SecretReference{Name: "ceph"}
	tests := []struct {
		name   string
		source corev1.PersistentVolumeSource
		mode   corev1.PersistentVolumeMode
	}{
		{"rbd", corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{CephMonitors: []string{"a"}, RBDImage: "i", SecretRef: secret, ReadOnly: true}}, block},
		{"nfs", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b", ReadOnly: true}}, filesystem},
		{"glusterfs", corev1.PersistentVolumeSource{Glusterfs: &corev1.GlusterfsPersistentVolumeSource{EndpointsName: "g", Path: "v", ReadOnly: true}}, filesystem},
		{"fc", corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"3600"}, ReadOnly: true}}, block},
		{"csi", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "nfs.csi.k8s.io", ReadOnly: true, VolumeAttributes: map[string]string{"server": "a", "share": "/b"},
		}}, filesystem},
	}
	for _, tt := range tests {
		for _, mode := range []volume.AccessMode{volume.WriteExclusive, volume.WriteShared, volume.ReadShared} {
			t.Run(tt.name+" "+string(mode), func(t *testing.T) {
				f := boundTo(tt.source, tt.mode)
				f.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "ceph"}, Data: map[string][]byte{"key": []byte("a2V5")}}
				f.others = []runtime.Object{gluster("192.0.2.1")}
				found, _, err := claim.Resolve(t.Context(), f.client(t), golden, claim.Need{AccessMode: mode, Nodes: []string{"a"}})
				var wrong *source.Error
				switch {
				case mode == volume.ReadShared && (err != nil || !found.ReadOnly):
					t.Errorf("read-only is %v, %v", found.ReadOnly, err)
				case mode != volume.ReadShared && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), "its PersistentVolume is read-only")):
					t.Errorf("got %v", err)
				}
			})
		}
	}
	t.Run("mounted read-only", func(t *testing.T) {
		f := boundTo(corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b"}}, filesystem)
		f.pv.Spec.MountOptions = []string{"hard", "ro"}
		_, _, err := claim.Resolve(t.Context(), f.client(t), golden, exclusive)
		if err == nil || !strings.Contains(err.Error(), "its PersistentVolume is read-only") {
			t.Errorf("got %v", err)
		}
	})
}

//nolint:staticcheck // what a GlusterFS volume refers to
func gluster(ip string) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "g"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: ip}}}},
	}
}

func TestResolve_ForbiddenConfigMap(t *testing.T) {
	f := ceph()
	client := f.client(t)
	f.fails("configmaps", apierrors.NewForbidden(corev1.Resource("configmaps"), "ceph-csi-config", nil))
	_, _, err := claim.Resolve(t.Context(), client, golden, exclusive)
	var wrong *source.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "ceph-csi/ceph-csi-config, key config.json, may not be read (permit it). Name one with ceph_config_map, or the monitors with monitors") {
		t.Errorf("got %v", err)
	}
}

func TestResolve_ConfiguredMonitors(t *testing.T) {
	f := ceph()
	client := f.client(t)
	f.fails("configmaps", unavailable())
	need := exclusive
	need.Monitors = []string{"198.51.100.1"}
	found, _, err := claim.Resolve(t.Context(), client, golden, need)
	if err != nil || found.Volume.Images[0].Servers[0].Host != "198.51.100.1" {
		t.Errorf("got %+v, %v", found.Volume, err)
	}
}

var lastCeph = claim.Last{UID: "claim-uid", Auth: &volume.Auth{Type: "ceph", Username: "kube", SecretUUID: "uuid"}}

func TestRefresh_CephVolume(t *testing.T) {
	f := ceph()
	got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, lastCeph)
	if err != nil || got.Volume == nil || got.Version != "42" || *got.Volume.Images[0].Auth != (volume.Auth{Type: "ceph", Username: "kube"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, action := range f.fake.Actions() {
		if action.GetResource().Resource == "secrets" {
			t.Errorf("a secret was read: %v", action)
		}
	}
}

func TestRefresh_KeepsConfiguredOptions(t *testing.T) {
	got, err := claim.Refresh(t.Context(), ceph().client(t), golden, claim.Options{Monitors: []string{"198.51.100.1"}}, lastCeph)
	if err != nil || got.Volume == nil || got.Volume.Images[0].Servers[0].Host != "198.51.100.1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefresh_WithoutConfigMap(t *testing.T) {
	t.Run("that is gone", func(t *testing.T) {
		f := ceph()
		f.others = nil
		got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, lastCeph)
		if err != nil || got.Volume != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "kept as it was last seen: no ConfigMap has the monitors of the Ceph cluster") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("that may not be read", func(t *testing.T) {
		f := ceph()
		client := f.client(t)
		f.fails("configmaps", apierrors.NewForbidden(corev1.Resource("configmaps"), "ceph-csi-config", nil))
		got, err := claim.Refresh(t.Context(), client, golden, claim.Options{}, lastCeph)
		if err != nil || got.Volume != nil || len(got.Warnings) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("but not without an answer", func(t *testing.T) {
		f := ceph()
		client := f.client(t)
		f.fails("configmaps", unavailable())
		if _, err := claim.Refresh(t.Context(), client, golden, claim.Options{}, lastCeph); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRefresh_WithoutEndpoints(t *testing.T) {
	f := boundTo(corev1.PersistentVolumeSource{Glusterfs: &corev1.GlusterfsPersistentVolumeSource{EndpointsName: "g", Path: "v"}}, corev1.PersistentVolumeFilesystem)
	got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, claim.Last{UID: "claim-uid"})
	if err != nil || got.Volume != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "the Endpoints vms/g") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefresh_NoRepeatedHints(t *testing.T) {
	f := ceph()
	f.pv.Spec.CSI.VolumeAttributes["radosNamespace"] = "team"
	found, _, err := claim.Resolve(t.Context(), f.client(t), golden, exclusive)
	if err != nil || len(found.Warnings) != 1 {
		t.Errorf("got %q, %v", found.Warnings, err)
	}
	got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, lastCeph)
	if err != nil || len(got.Warnings) != 0 {
		t.Errorf("got %q, %v", got.Warnings, err)
	}
}
