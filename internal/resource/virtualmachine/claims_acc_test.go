//go:build acc

package virtualmachine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// kind is a claim on a kind of PersistentVolume.
type kind struct {
	source     corev1.PersistentVolumeSource
	filesystem bool
	// options are HCL for the binding's claim; node is the only node with the volume, if not all have it.
	options, node string
	// stored reads the content of the storage.
	stored func(offset int64, n int) string
	// blank is set if the storage has no content yet.
	blank bool
}

// kinds make claims' storage by a name that is at most a serial number of virtio.
var kinds = map[string]func(t *testing.T, l *lab.Lab) kind{
	"iscsi": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		return iscsiKind(t, l, acctest.LUN(t, l, false, acctest.Known), nil)
	},
	"iscsi-chap": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		acctest.CHAPSecret(t, l, "kinds", "chap")
		return iscsiKind(t, l, acctest.LUN(t, l, true, acctest.Known), &corev1.SecretReference{Namespace: "kinds", Name: "chap"})
	},
	"rbd": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		ceph, image := acctest.Ceph(t, l)
		return cephKind(t, l, ceph, image)
	},
	"ceph-csi": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		return cephCSIKind(t, l, "rbd.csi.ceph.com", "csi", map[string]string{"ceph-csi-config": "config.json"})
	},
	// Since Rook has the operator of ceph-csi, its own ConfigMap is empty.
	"rook": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		return cephCSIKind(t, l, "rook.rbd.csi.ceph.com", "rook",
			map[string]string{"rook-ceph-csi-config": "csi-cluster-config-json", "ceph-csi-config": "config.json"})
	},
	"nfs": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		dir := acctest.NFS(t, l)
		return nfsKind(t, dir, "")
	},
	"nfs-mounted": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		dir := acctest.NFS(t, l)
		return nfsKind(t, dir, fmt.Sprintf("mount_path = %q", dir.Path))
	},
	"nfs-squash": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		dir, image := acctest.SquashedNFS(t, l, 107, 36)
		return kind{
			source:     corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: dir.Server, Path: dir.Export}},
			filesystem: true, options: "uid = 107, gid = 36", stored: acctest.InFile(t, image),
		}
	},
	"device-path": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		return onDevice(t, acctest.Loop(t, l))
	},
	"local-block": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		device := acctest.Loop(t, l)
		return kind{
			source: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: device.Path}}, node: "host-a",
			stored: acctest.InFile(t, device.Path),
		}
	},
	"local-files": func(t *testing.T, _ *lab.Lab) kind {
		t.Helper()
		dir := t.TempDir()
		return kind{
			source: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}}, node: "host-a",
			filesystem: true, stored: acctest.InFile(t, acctest.ImageIn(t, dir, "disk.img")),
		}
	},
	"host-path": func(t *testing.T, _ *lab.Lab) kind {
		t.Helper()
		dir := t.TempDir()
		return kind{
			source:     corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
			filesystem: true, stored: acctest.InFile(t, acctest.ImageIn(t, dir, "disk.img")),
		}
	},
	"any-driver": func(t *testing.T, l *lab.Lab) kind {
		t.Helper()
		dir := t.TempDir()
		acctest.RefuseLinks(t, l.Hosts["host-a"], dir)
		return kind{
			source:     corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "files.example.com", VolumeHandle: "1"}},
			filesystem: true, options: fmt.Sprintf("mount_path = %q, create_disk_image = true", dir), blank: true,
			stored: acctest.InFile(t, filepath.Join(dir, "disk.img")),
		}
	},
}

func onDevice(t *testing.T, device lab.BlockDevice) kind {
	t.Helper()
	return kind{
		source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "driver.longhorn.io", VolumeHandle: strings.TrimPrefix(device.Path, "/dev/"),
		}},
		options: `device_path = "/dev/{.spec.csi.volumeHandle}"`, stored: acctest.InFile(t, device.Path),
	}
}

func iscsiKind(t *testing.T, l *lab.Lab, lun lab.LUN, secret *corev1.SecretReference) kind {
	t.Helper()
	return kind{
		source: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
			TargetPortal: l.Target.Portal, IQN: lun.IQN, Lun: int32(lun.Number), SessionCHAPAuth: secret != nil, SecretRef: secret,
		}},
		stored: acctest.InFile(t, lun.Path),
	}
}

func cephKind(t *testing.T, l *lab.Lab, ceph *lab.RBD, image lab.RBDImage) kind {
	t.Helper()
	secret(t, l, "ceph", map[string]string{"key": ceph.Key})
	return kind{
		source: corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{
			CephMonitors: ceph.Monitors, RBDPool: image.Pool, RBDImage: image.Image, RadosUser: ceph.User,
			SecretRef: &corev1.SecretReference{Namespace: "kinds", Name: "ceph"},
		}},
		stored: acctest.InCeph(t, ceph, image),
	}
}

// cephCSIKind is an image of ceph-csi with that driver, whose secret and ConfigMaps are in a namespace. All but the ConfigMap
// ceph-csi-config have no cluster.
func cephCSIKind(t *testing.T, l *lab.Lab, driver, namespace string, configs map[string]string) kind {
	t.Helper()
	ceph, image := acctest.Ceph(t, l)
	secretIn(t, l, namespace, "ceph-csi", map[string]string{"userID": ceph.User, "userKey": ceph.Key})
	for name, key := range configs {
		clusters := "[]"
		if name == "ceph-csi-config" {
			clusters = fmt.Sprintf(`[{"clusterID": "lab", "monitors": [%q]}]`, ceph.Monitors[0])
		}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: clusters}}
		if err := l.AddConfigMap(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		acctest.Undo(t, func(ctx context.Context) error { return l.RemoveConfigMap(ctx, namespace, name) })
	}
	return kind{
		source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: driver, VolumeHandle: "0001-0003-lab-0000000000000001-0",
			VolumeAttributes:   map[string]string{"clusterID": "lab", "pool": image.Pool, "imageName": image.Image},
			NodeStageSecretRef: &corev1.SecretReference{Namespace: namespace, Name: "ceph-csi"},
		}},
		stored: acctest.InCeph(t, ceph, image),
	}
}

func nfsKind(t *testing.T, dir lab.NFSDir, options string) kind {
	t.Helper()
	return kind{
		source:     corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: dir.Server, Path: dir.Export}},
		filesystem: true, options: options, stored: acctest.InFile(t, acctest.ImageIn(t, dir.Path, "disk.img")),
	}
}

func secret(t *testing.T, l *lab.Lab, name string, data map[string]string) {
	t.Helper()
	secretIn(t, l, "kinds", name, data)
}

func secretIn(t *testing.T, l *lab.Lab, namespace, name string, data map[string]string) {
	t.Helper()
	if err := l.AddNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
	if err := l.AddSecret(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, namespace, name) })
}

// onNode is the affinity of a volume that only one node has.
func onNode(name string) *corev1.VolumeNodeAffinity {
	if name == "" {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		},
	}}}}
}

// On each kind of PersistentVolume a guest reads the claim's content, and what it writes is in the storage behind the claim. One guest has
// them all.
func TestAccVolumeBinding_EachKindOfClaim(t *testing.T) {
	l := acctest.Lab(t)
	config, console := acctest.Provider(l, "kinds"), acctest.NewConsole(t)
	var disks []string
	checks := []resource.TestCheckFunc{}
	for name, create := range kinds {
		k := create(t, l)
		acctest.AddClaim(t, l, lab.ClaimSpec{
			Namespace: "kinds", Name: name, Source: &k.source, Size: acctest.StorageSize, Filesystem: k.filesystem, NodeAffinity: onNode(k.node),
		})
		config += named(name, bound(fmt.Sprintf(`persistent_volume_claim = { namespace = "kinds", claim_name = %q, %s }`, name, k.options), "write-exclusive", "host-a"))
		disks = append(disks, told(name, "virtclaim_volume_binding."+name))
		checks = append(checks, resource.TestCheckResourceAttr("virtclaim_volume_binding."+name, "volume.capacity", fmt.Sprint(acctest.StorageSize)),
			func(*terraform.State) error { k.isWritten(t, name, console); return nil })
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config + machine{disks: disks, log: console.Path(), cmdline: writeAll(len(disks), written)}.hcl(l),
			Check:  resource.ComposeAggregateTestCheckFunc(checks...),
		}},
	})
}

func (k kind) isWritten(t *testing.T, serial string, console acctest.Console) {
	t.Helper()
	if !k.blank {
		writes(t, serial, acctest.Storage{Stored: k.stored}, console)
		return
	}
	console.Await(t, "READY")
	console.Await(t, "WROTE "+strings.Fields(console.Await(t, "serial="+serial+" "))[1]+" ")
	if got := k.stored(4096, len(written)); got != written {
		t.Errorf("the new disk.img has %q where the guest wrote", got)
	}
}

// A claim grows under a running guest: network storage and devices are larger for it at once, in the same boot.
func TestAccVolumeBinding_GrowsUnderRunningGuest(t *testing.T) {
	const size = 2 * acctest.StorageSize
	grown := fmt.Sprintf("until [ $(cat /sys/block/vda/size) = %d ]; do sleep 1; done && echo GREW &", size/512)
	for name, growing := range map[string]func(*testing.T, *lab.Lab) (kind, func() error){
		"rbd": func(t *testing.T, l *lab.Lab) (kind, func() error) {
			t.Helper()
			ceph, image := acctest.Ceph(t, l)
			return cephKind(t, l, ceph, image), func() error { return ceph.GrowImage(t.Context(), image, size) }
		},
		"local block": func(t *testing.T, l *lab.Lab) (kind, func() error) {
			t.Helper()
			device := acctest.Loop(t, l)
			return kind{source: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: device.Path}}, node: "host-a"},
				func() error { return l.GrowBlockDevice(t.Context(), device, size) }
		},
		"device path": func(t *testing.T, l *lab.Lab) (kind, func() error) {
			t.Helper()
			device := acctest.Loop(t, l)
			return onDevice(t, device), func() error { return l.GrowBlockDevice(t.Context(), device, size) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			k, grow := growing(t, l)
			spec := lab.ClaimSpec{Namespace: "kinds", Name: "data", Source: &k.source, Size: acctest.StorageSize, NodeAffinity: onNode(k.node)}
			acctest.AddClaim(t, l, spec)
			console := acctest.NewConsole(t)
			source := fmt.Sprintf(`persistent_volume_claim = { namespace = "kinds", claim_name = "data", %s }`, k.options)
			config := acctest.Provider(l, "kinds") + bound(source, "write-exclusive", "host-a") +
				machine{disks: []string{disk("data", "data", "virtio")}, log: console.Path(), cmdline: "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(grown))}.hcl(l)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: config,
					Check: func(*terraform.State) error {
						console.Await(t, "READY")
						acctest.GrowClaim(t, l, spec, size)
						return grow()
					},
					ExpectNonEmptyPlan: true,
				}, {
					Config: config,
					Check: func(*terraform.State) error {
						console.Await(t, "GREW")
						if boots := console.Boots(); boots != 1 {
							return fmt.Errorf("the guest booted %d times", boots)
						}
						return nil
					},
				}},
			})
		})
	}
}

// A claim that waits for a consumer is provisioned for the host of its binding, and a guest reads and writes its volume.
func TestAccVolumeBinding_FirstConsumerInGuest(t *testing.T) {
	l := acctest.Lab(t)
	k := iscsiKind(t, l, acctest.LUN(t, l, false, acctest.Known), nil)
	class := acctest.DelayedClass(t, l, "delayed.example.com", map[string]string{"host-a": "one", "host-b": "one"})
	acctest.Provision(t, l, class, k.source, "")
	acctest.DelayedClaim(t, l, class, lab.ClaimSpec{Namespace: "kinds", Name: "delayed", Size: acctest.StorageSize})
	console := acctest.NewConsole(t)
	source := `persistent_volume_claim = { namespace = "kinds", claim_name = "delayed" }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "kinds") + named("delayed", bound(source, "write-exclusive", "host-a", "host-b")) +
				machine{disks: []string{told("delayed", "virtclaim_volume_binding.delayed")}, log: console.Path(), cmdline: writeAll(1, written)}.hcl(l),
			Check: func(*terraform.State) error { k.isWritten(t, "delayed", console); return nil },
		}},
	})
}
