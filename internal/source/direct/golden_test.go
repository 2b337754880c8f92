package direct

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var update = flag.Bool("update", false, "regenerate the golden files")

const uuid = "5f0c6f1e-58f5-5c80-9b57-0d3a2f6f8a11"

// TestResolve_Golden resolves a source of each kind, binds it, and compares the device for libvirt.
func TestResolve_Golden(t *testing.T) {
	sources := map[string]struct {
		source Source
		mode   volume.AccessMode
	}{
		// The example of the design documents has the portal's name, and its LUN outside of the IQN.
		"iscsi": {ISCSI{Portal: "iscsi-demo-target:3260", IQN: "iqn.2017-01.io.kubevirt:sn.42", LUN: 2}, volume.WriteExclusive},
		"iscsi-chap": {
			ISCSI{Portal: "[2001:db8::1]", IQN: "IQN.2001-04.com.example:Disk", Username: "u", Password: []byte(password)}, volume.WriteShared,
		},
		"rbd": {
			RBD{Monitors: []string{"v1:mon-a.example:6789", "[2001:db8::2]"}, Image: "disk", Username: "admin", Key: []byte(key)}, volume.WriteExclusive,
		},
		"rbd-namespace":  {RBD{Monitors: []string{"192.0.2.1"}, Pool: "ssd", Namespace: "team", Image: "disk"}, volume.ReadShared},
		"nbd":            {NBD{Server: "nbd.example", Export: "a <disk>"}, volume.WriteExclusive},
		"nbd-tls":        {NBD{Server: "[2001:db8::3]:10810", TLS: true}, volume.ReadShared},
		"nbd-socket":     {NBD{Socket: "/run/nbd.sock", Export: "x"}, volume.WriteExclusive},
		"gluster":        {Gluster{Servers: []string{"g1.example", "192.0.2.2:24008", "g1.example"}, Volume: "images", Path: "vms/a.img"}, volume.WriteExclusive},
		"nfs":            {NFS{Server: "2001:db8::4", Path: "/exports//vms/a.img", UID: 107, GID: 108}, volume.WriteExclusive},
		"http":           {HTTP{URL: "http://images.example:8080/a%20b.img?id=1&x=%22"}, volume.ReadShared},
		"https":          {HTTP{URL: "https://[2001:db8::5]/a.img"}, volume.ReadShared},
		"https-insecure": {HTTP{URL: "https://images.example", Insecure: true}, volume.ReadShared},
		"file":           {File{Path: "/mnt/a & b/disk.img"}, volume.WriteShared},
		"file-qcow2":     {File{Path: "/mnt/disk.qcow2", Format: "qcow2"}, volume.WriteExclusive},
		"block":          {Block{Path: "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"}, volume.WriteExclusive},
	}
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			found, err := s.source.Resolve(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := device(t, found.Volume, s.mode)
			file := filepath.Join("testdata", name+".golden.xml")
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
			if strings.Contains(got, password) || strings.Contains(got, key) {
				t.Error("the device holds the secret")
			}
		})
	}
}

// device returns the device of a volume in a machine's definition.
func device(t *testing.T, v volume.Volume, mode volume.AccessMode) string {
	t.Helper()
	v.Images[0].AccessMode = mode
	if v.Images[0].Auth != nil {
		v.Images[0].Auth.SecretUUID = uuid
	}
	text, err := domainxml.Build(domainxml.Machine{
		Name: "m", VCPUs: 1, Memory: 1 << 17, DomainType: "kvm",
		Disks: map[string]domainxml.Disk{"disk": {Volume: v, Bus: "virtio"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := domainxml.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	element, ok, err := d.Device("disk")
	if err != nil || !ok {
		t.Fatalf("there is no device: %v", err)
	}
	return element + "\n"
}
