package claim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var update = flag.Bool("update", false, "regenerate the golden files")

// needs are the needs of manifests for another use than by one machine that writes, on one host.
var needs = map[string]claim.Need{
	"iscsi-force-block":          {Options: claim.Options{ForceBlock: true}},
	"rbd-force-block":            {Options: claim.Options{ForceBlock: true}},
	"design-direct-disks-forced": {Options: claim.Options{ForceBlock: true}},
	"iscsi-mounted":              {Options: claim.Options{MountPath: "/mnt/golden"}},
	"nfs-mounted":                {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/golden/"}},
	"other-csi-mounted":          {AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/golden"}},
	"nfs":                        {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}},
	"glusterfs":                  {AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}},
	"rbd-csi-monitors":           {Options: claim.Options{Monitors: []string{"v1:198.51.100.1", "[2001:db8::9]:6790"}}},
	"rbd-csi-static-monitors":    {Options: claim.Options{Monitors: []string{"198.51.100.1"}}},
	"rbd-csi-configmap":          {Options: claim.Options{ConfigMap: claim.ConfigMapRef{Namespace: "storage", Name: "clusters", Key: "list.json"}}},
	"hostpath-shared":            {Options: claim.Options{SharedFolder: true}},
	"iscsi-mounted-shared":       {Options: claim.Options{SharedFolder: true, MountPath: "/mnt/golden"}},
	"nfs-shared":                 {Options: claim.Options{SharedFolder: true}},
	"local-block-shared":         {Options: claim.Options{SharedFolder: true}},
	"iscsi-block-shared":         {Options: claim.Options{SharedFolder: true, DevicePath: "/dev/sdb"}},
	"hostpath-file-shared":       {Options: claim.Options{SharedFolder: true}},
	"hostpath-two-hosts":         {Nodes: []string{"a", "b"}},

	"rbd-csi-mapped":  device(`/dev/rbd/{.spec.csi.volumeAttributes.pool}/{.spec.csi.volumeAttributes.imageName}`),
	"longhorn":        device(`/dev/longhorn/{.spec.csi.volumeHandle}`),
	"topolvm":         device(`/dev/myvg1/{.spec.csi.volumeHandle}`),
	"lvms":            device(`/dev/vg1/{.spec.csi.volumeHandle}`),
	"nvmf":            device(`/dev/disk/by-id/nvme-uuid.{.spec.csi.volumeAttributes.deviceUUID}`),
	"fc-csi":          device(`/dev/disk/by-id/scsi-3600508b400105e210000900000490000`),
	"fc-multipath":    device(`/dev/disk/by-id/dm-uuid-mpath-{.spec.fc.wwids[0]}`),
	"iscsi-multipath": device(`/dev/disk/by-id/dm-uuid-mpath-36001405a3f1c07d8b1f4c1e8d7a92b60`),
	"iscsi-by-path": device(
		`/dev/disk/by-path/ip-{.spec.iscsi.targetPortal}-iscsi-{.spec.iscsi.iqn}-lun-{.spec.iscsi.lun}`),
	"portworx":                      device(`/dev/pxd/pxd{.spec.csi.volumeHandle}`),
	"linstor-storage-layer":         device(`/dev/drbdpool/{.spec.csi.volumeHandle}_00000`),
	"longhorn-no-field":             device(`/dev/longhorn/{.spec.csi.volumeAttributes.share}`),
	"iscsi-device-elsewhere":        device(`/etc/{.spec.iscsi.iqn}`),
	"longhorn-filesystem-as-device": device(`/dev/longhorn/{.spec.csi.volumeHandle}`),
	"linstor-minor":                 device("/dev/drbd1000"),
	"longhorn-decrypted":            device(`/dev/mapper/{.spec.csi.volumeHandle}`),
	"longhorn-encrypted":            device(`/dev/longhorn/{.spec.csi.volumeHandle}`),
	"rbd-csi-encrypted-mapped":      device(`/dev/rbd/{.spec.csi.volumeAttributes.pool}/{.spec.csi.volumeAttributes.imageName}`),
	"portworx-secure":               device(`/dev/pxd/pxd{.spec.csi.volumeHandle}`),
	"linstor-two-hosts":             {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}},
	"democratic-hostpath-two-hosts": {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}},
	"democratic-nfs-squash":         {Options: claim.Options{User: "107", Group: "36"}},
	"nfs-squash":                    {Options: claim.Options{User: "107"}},
	"nfs-squash-mounted":            {Options: claim.Options{User: "107", MountPath: "/mnt/golden"}},
	"local-squash":                  {Options: claim.Options{Group: "107"}},
	"democratic-nfs-mounted":        {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/golden"}},
	"hpp-mounted":                   {Options: claim.Options{MountPath: "/var/hpvolumes/csi/{.spec.csi.volumeHandle}"}},
	"hpp-two-hosts":                 {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/var/hpvolumes/csi/{.metadata.name}"}},
	"longhorn-mounted":              {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/{.spec.claimRef.namespace}-{.spec.claimRef.name}"}},
	"smb-mounted":                   {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/{.metadata.name}"}},
	"trident-nfs-attached":          {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{Attach: true}},
	"longhorn-attached":             {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{Attach: true}},
	"smb-attached":                  {AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}, Options: claim.Options{Attach: true}},
	"other-csi-attached":            {Options: claim.Options{Attach: true}},
	"iscsi-attached":                {Options: claim.Options{Attach: true}},
	"longhorn-block-attached":       {Options: claim.Options{Attach: true}},
	"hostpath-attached":             {Options: claim.Options{Attach: true}},
	"iscsi-attached-two-hosts":      {AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}, Options: claim.Options{Attach: true}},
	"juicefs-mounted":               {AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}, Options: claim.Options{MountPath: "/mnt/{.metadata.name}"}},
}

func device(path string) claim.Need { return claim.Need{Options: claim.Options{DevicePath: path}} }

func needOf(name string) claim.Need {
	n := needs[name]
	if n.AccessMode == "" {
		n.AccessMode = volume.WriteExclusive
	}
	if n.Nodes == nil {
		n.Nodes = []string{"a"}
	}
	return n
}

// eachManifest resolves the claim vms/golden of each manifest.
func eachManifest(t *testing.T, pattern string, check func(t *testing.T, base string, need claim.Need, found source.Resolved, err error)) {
	t.Helper()
	manifests, err := filepath.Glob(pattern)
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, manifest := range manifests {
		base := strings.TrimSuffix(manifest, ".yaml")
		t.Run(filepath.Base(base), func(t *testing.T) {
			client := cluster.NewForClients("https://api", fake.NewClientset(decode(t, manifest)...), nil)
			need := needOf(filepath.Base(base))
			found, _, err := claim.Resolve(t.Context(), client, golden, need)
			check(t, base, need, found, err)
		})
	}
}

// TestResolve_Golden compares the result for a claim, and the device for a machine.
func TestResolve_Golden(t *testing.T) {
	eachManifest(t, "testdata/*.yaml", func(t *testing.T, base string, need claim.Need, found source.Resolved, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		compare(t, base+".golden.json", string(got)+"\n")
		compare(t, base+".golden.xml", deviceOf(t, found.Volume, need.AccessMode))
	})
}

// TestResolve_GoldenRefused compares the errors of claims that a machine can't use.
func TestResolve_GoldenRefused(t *testing.T) {
	eachManifest(t, "testdata/refused/*.yaml", func(t *testing.T, base string, _ claim.Need, _ source.Resolved, err error) {
		t.Helper()
		kind := "not ready"
		var wrong *source.Error
		var notReady *source.NotReady
		switch {
		case errors.As(err, &wrong):
			kind = "wrong"
			if wrong.Attribute != "" {
				kind += " " + wrong.Attribute
			}
		case !errors.As(err, &notReady):
			t.Fatalf("got %v", err)
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("the error holds the password: %v", err)
		}
		compare(t, base+".golden.txt", fmt.Sprintf("%s: %s\n", kind, err))
	})
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs:\n%s", file, diff)
	}
}

// deviceOf returns the device of a volume in a machine's definition.
func deviceOf(t *testing.T, v volume.Volume, mode volume.AccessMode) string {
	t.Helper()
	text, err := deviceXML(v, mode)
	if err != nil {
		t.Fatal(err)
	}
	return text + "\n"
}

func deviceXML(v volume.Volume, mode volume.AccessMode) (string, error) {
	v.Images = []volume.Image{v.Images[0]}
	v.Images[0].AccessMode = mode
	if auth := v.Images[0].Auth; auth != nil {
		v.Images[0].Auth = &volume.Auth{Type: auth.Type, Username: auth.Username, SecretUUID: "5f0c6f1e-58f5-5c80-9b57-0d3a2f6f8a11"}
	}
	m := domainxml.Machine{Name: "m", VCPUs: 1, Memory: 1 << 17, DomainType: "kvm"}
	if v.Images[0].IsFolder() {
		m.Filesystems = map[string]domainxml.Filesystem{"disk": {Source: v.Images[0].Name, Target: "disk", Driver: domainxml.VirtioFS, Volume: v}}
	} else {
		m.Disks = map[string]domainxml.Disk{"disk": {Volume: v, Bus: "virtio"}}
	}
	text, err := domainxml.Build(m)
	if err != nil {
		return "", err
	}
	d, err := domainxml.Read(text)
	if err != nil {
		return "", err
	}
	element, ok, err := d.Device("disk")
	if v.Images[0].IsFolder() {
		element, ok, err = d.FilesystemDevice("disk")
	}
	if err == nil && !ok {
		err = errors.New("there is no device")
	}
	return element, err
}

func decode(t testing.TB, manifest string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	buffer := make([]byte, len(content))
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(buffer[:n], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}
