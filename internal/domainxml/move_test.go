package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
