package content_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// overlaid is an empty qcow2 image over a file.
func overlaid() []byte {
	head := qcow2(1 << 20)
	binary.BigEndian.PutUint64(head[8:], 512)
	binary.BigEndian.PutUint32(head[16:], 11)
	copy(head[512:], "/etc/shadow")
	return head
}

// split is an empty qcow2 image with an external data file.
func split() []byte {
	head := qcow2(1 << 20)
	binary.BigEndian.PutUint64(head[72:], 4)
	return head
}

// opener is a domain that opens /ssd/web, or an image below it.
func opener(disk string) *fakeDomain {
	return &fakeDomain{name: "web", uuid: "1", xml: "<domain><name>web</name><devices>" + disk + "</devices></domain>"}
}

func opens(source, format string) string {
	return fmt.Sprintf("<disk><driver type='%s'/><source %s/><target dev='vda'/></disk>", format, source)
}

// A domain that opens the volume decides, then the header, as far as it can be trusted.
func TestFormatOf(t *testing.T) {
	raw := opens("file='/ssd/web'", "raw")
	for name, c := range map[string]struct {
		content []byte
		domain  string
		want    string
		refused bool
	}{
		"an empty volume":             {nil, "", "raw", false},
		"zeros":                       {make([]byte, 4096), "", "raw", false},
		"qcow2":                       {qcow2(1 << 20), "", "qcow2", false},
		"an overlay":                  {overlaid(), "", "qcow2", false},
		"data elsewhere":              {split(), "", "raw", true},
		"VMDK":                        {[]byte("# Disk DescriptorFile\nRW 1 FLAT \"/etc/shadow\" 0"), "", "raw", true},
		"qcow2 that is opened so":     {qcow2(1 << 20), opens("file='/ssd/web'", "qcow2"), "qcow2", false},
		"split that is opened so":     {split(), opens("file='/ssd/web'", "qcow2"), "qcow2", true},
		"qcow2 that is opened as raw": {qcow2(1 << 20), raw, "raw", false},
		"split that is opened as raw": {split(), raw, "raw", false},
		"opened as a volume":          {overlaid(), "<disk type='volume'><driver type='raw'/><source pool='ssd' volume='web'/><target dev='vda'/></disk>", "raw", false},
		"opened below an overlay": {overlaid(), "<disk><driver type='qcow2'/><source file='/top'/><backingStore type='file'><format type='raw'/>" +
			"<source file='/ssd/web'/><backingStore/></backingStore><target dev='vda'/></disk>", "raw", false},
		"another is opened as raw": {qcow2(1 << 20), opens("file='/ssd/other'", "raw"), "qcow2", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			v := host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web"}
			h.volumes["ssd/web"] = &fakeVolume{StorageVolume: v, content: c.content}
			if c.domain != "" {
				h.domains["web"] = opener(c.domain)
			}
			is, err := content.FormatOf(t.Context(), h, v)
			if err != nil || is.Name != c.want || errors.Is(is.Refused, image.ErrUntrusted) != c.refused {
				t.Errorf("got %+v, %v", is, err)
			}
		})
	}
}

// A second pool over the same folder shows the same files: a domain that names one of them by that pool has it open.
func TestFormatOf_SecondPoolOverTheFolder(t *testing.T) {
	h := newHost()
	v := host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web", Type: "file"}
	h.volumes["ssd/web"] = &fakeVolume{StorageVolume: v, content: overlaid()}
	h.volumes["second/web"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "second", Name: "web", Path: "/ssd/web", Type: "file"}}
	h.domains["web"] = opener("<disk type='volume'><driver type='raw'/><source pool='second' volume='web'/><target dev='vda'/></disk>")
	is, err := content.FormatOf(t.Context(), h, v)
	if err != nil || is.Name != "raw" || is.Domain != "web" {
		t.Errorf("got %+v, %v", is, err)
	}
}

// marked is a disk of a virtclaim machine, with the image in its metadata.
func marked(disk string) string {
	return disk + `</devices><metadata><machine xmlns="https://virtclaim.io/libvirt/domain/1" phase="ready"><disk key="vda">` +
		`<image name="/ssd/web" access-mode="write-exclusive" generation="g"/></disk></machine></metadata><devices>`
}

// If one domain has a volume as raw and another one as qcow2, the format is unknown, and the error names both.
func TestFormatOf_Contradiction(t *testing.T) {
	h := newHost()
	v := host.StorageVolume{Pool: "ssd", Name: "web", Path: "/ssd/web", Type: "file"}
	h.volumes["ssd/web"] = &fakeVolume{StorageVolume: v, content: qcow2(1 << 20)}
	h.domains["web"] = opener(opens("file='/ssd/web'", "qcow2"))
	rescue := opener(opens("file='/ssd/web'", "raw"))
	rescue.name, rescue.uuid, rescue.xml = "rescue", "2", strings.Replace(rescue.xml, "<name>web<", "<name>rescue<", 1)
	h.domains["rescue"] = rescue
	is, err := content.FormatOf(t.Context(), h, v)
	if err == nil || !strings.Contains(err.Error(), "domain rescue has it as raw, and domain web as qcow2") {
		t.Errorf("got %+v, %v", is, err)
	}
}

// Only the header of a possible overlay prevents a deletion.
func TestRemovable_Heads(t *testing.T) {
	for name, c := range map[string]struct {
		path, domain string
		// noted is the format with which the volume was adopted.
		noted string
		backs bool
	}{
		"an overlay that no machine has":      {"/ssd/web", "", "", true},
		"an overlay that a machine has":       {"/ssd/web", opens("file='/ssd/web'", "qcow2"), "", true},
		"a raw disk of a machine":             {"/ssd/web", marked(opens("file='/ssd/web'", "raw")), "", false},
		"what a rescue machine has as raw":    {"/ssd/web", opens("file='/ssd/web'", "raw"), "", true},
		"a raw disk of others":                {"/ssd/web", opens("file='/ssd/web'", "raw"), "raw", false},
		"a raw disk that no machine has":      {"/ssd/web", "", "raw", false},
		"an adopted overlay":                  {"/ssd/web", "", "qcow2", true},
		"a raw disk that was made an overlay": {"/ssd/web", opens("file='/ssd/web'", "qcow2"), "raw", true},
		"itself":                              {"/ssd/master", "", "", false},
		"what is opened in either format":     {"/ssd/web", opens("file='/ssd/web'", "raw") + opens("file='/ssd/web'", "qcow2"), "", true},
		"what another raw disk looks like":    {"/ssd/web", opens("file='/ssd/other'", "raw"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			h.volumes["ssd/master"] = &fakeVolume{StorageVolume: host.StorageVolume{Pool: "ssd", Name: "master", Path: "/ssd/master"}}
			above := host.StorageVolume{Pool: "ssd", Name: "above", Path: c.path, Type: "file", Physical: 1 << 20, Backing: "/ssd/master"}
			h.volumes["ssd/above"] = &fakeVolume{StorageVolume: above}
			if c.noted != "" {
				if _, err := content.Adopt(t.Context(), h, above, c.noted); err != nil {
					t.Fatal(err)
				}
			}
			if c.domain != "" {
				h.domains["web"] = opener(c.domain)
			}
			if err := removable(t, h, "master", "qcow2", ""); errors.Is(err, content.ErrBacking) != c.backs {
				t.Errorf("got %v", err)
			}
		})
	}
}
