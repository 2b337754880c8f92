package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestStateFolders(t *testing.T) {
	const id = "6a1c1b1e-0000-4000-8000-000000000001"
	swtpm := StateFolder{Path: "/var/lib/libvirt/swtpm/" + id + "/tpm2"}
	for name, c := range map[string]struct {
		os, devices string
		want        []StateFolder
	}{
		"none":           {"", "", nil},
		"a path":         {"<loader type='pflash'>/f</loader><nvram>/n/web.fd</nvram>", "", []StateFolder{{"/n", []string{"web.fd"}}}},
		"a source":       {"<loader type='pflash'>/f</loader><nvram type='file'><source file='/n/web.fd'/></nvram>", "", []StateFolder{{"/n", []string{"web.fd"}}}},
		"libvirt's path": {"<firmware/>", "", []StateFolder{{"/var/lib/libvirt/qemu/nvram", []string{"web_VARS.fd", "web_VARS.qcow2"}}}},
		"a TPM":          {"", "<tpm><backend type='emulator' version='2.0'/></tpm>", []StateFolder{swtpm}},
		"an older TPM": {
			"", "<tpm><backend type='emulator' version='1.2'/></tpm>",
			[]StateFolder{{Path: "/var/lib/libvirt/swtpm/" + id + "/tpm1.2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			os := "<os>"
			if strings.Contains(c.os, "<firmware/>") {
				os = "<os firmware='efi'>"
			}
			d, err := Read("<domain type='qemu'><name>web</name><uuid>" + id + "</uuid>" + os + "<type>hvm</type>" + c.os +
				"</os><devices><disk type='file' device='disk'><source file='/data'/><target dev='vda' bus='virtio'/></disk>" + c.devices +
				"</devices></domain>")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.StateFolders()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			remains, err := d.Remains()
			if err != nil || (remains == "") != (len(c.want) == 0) || strings.Contains(remains, "<disk") {
				t.Errorf("%v: %s", err, remains)
			}
		})
	}
}

// On its other host a domain has the disks, and the kernel, that are there; all else is the same.
func TestDomain_WithMoveOfDisks(t *testing.T) {
	disk := func(host, path, mode string) volume.Volume {
		return volume.Volume{Images: []volume.Image{
			{Type: "file", Format: "qcow2", Name: path, Generation: "1", AccessMode: volume.AccessMode(mode), Hosts: []string{host}},
			{Type: "file", Format: "raw", Name: path + "-base", Generation: "2", AccessMode: volume.ReadShared, Hosts: []string{host}},
		}}
	}
	m := Machine{
		Name: "web", UUID: "7d6c1f6e-5a3b-4f0a-9a53-0f8a5b1f2c3d", VCPUs: 1, Memory: 1 << 20, DomainType: "qemu",
		Boot: &Boot{Kernel: "/a/kernel", Initrd: "/a/initrd"}, Metadata: Metadata{Phase: Ready},
		FWCfg: map[string]string{"opt/a": "/a/web.ign"}, Run: "e30=",
		Disks: map[string]Disk{
			"root": {Volume: disk("a", "/a/root", "write-exclusive"), Device: Fixed, Bus: "virtio"},
			"data": {Volume: disk("a", "/a/data", "write-exclusive"), Device: Fixed, Bus: "virtio"},
		},
	}
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	before, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	there := Arrival{
		Volumes: map[string]volume.Volume{"root": disk("b", "/b/root", "write-exclusive")}, Kernel: "/b/kernel", Initrd: "/b/initrd",
		FWCfg: map[string]string{"opt/a": "/b/web.ign"},
	}
	move := Move{From: "a", To: "b", ID: "1"}
	moved, err := d.WithMove(move, there)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Parse(moved)
	if err != nil {
		t.Fatal(err)
	}
	root := before.Disks["root"]
	root.Volume = there.Volumes["root"]
	before.Disks["root"], before.Metadata.Move = root, move
	before.Boot = &Boot{Kernel: "/b/kernel", Initrd: "/b/initrd"}
	before.FWCfg = there.FWCfg
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the machine there (-want +got):\n%s", diff)
	}
}
