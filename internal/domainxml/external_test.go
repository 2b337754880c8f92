package domainxml

import (
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const externalMetadata = `<metadata><machine xmlns="https://virtclaim.io/libvirt/domain/1" phase="ready"><disk key="root"><image name="NOTED" generation="g" access-mode="write-exclusive"><host>a</host></image></disk></machine></metadata>`

// externalDomain returns the XML of a domain with the disk root, which contains inside, and with the given image in virtclaim's
// metadata.
func externalDomain(noted, inside string) string {
	metadata := ""
	if noted != "" {
		metadata = strings.Replace(externalMetadata, "NOTED", noted, 1)
	}
	return `<domain type="qemu"><name>web</name><memory unit="KiB">1024</memory>` + metadata + `<os><type arch="x86_64">hvm</type></os><devices><disk type="file" device="disk"><driver name="qemu" type="qcow2"/>` +
		inside + `<target dev="vda" bus="virtio"/><alias name="ua-disk-root"/></disk></devices></domain>`
}

func externalSource(path, below string) string {
	return `<source file="` + path + `"/>` + below
}

func externalBacking(path, below string) string {
	return `<backingStore type="file" index="3"><format type="qcow2"/><source file="` + path + `"/>` + below + `</backingStore>`
}

// twoNoted is externalDomain with a master recorded below the image /ours.
func twoNoted(inside string) string {
	return strings.Replace(externalDomain("/ours", inside), "</disk></machine>",
		`<image name="/master" access-mode="read-shared"><host>a</host></image></disk></machine>`, 1)
}

// The running domain, the stored definition and the metadata together show that an overlay was put on a disk, or that it was or is
// being moved.
func TestExternals(t *testing.T) {
	const end = `<backingStore/>`
	ours := externalSource("/ours", end)
	snapped := externalSource("/snap", externalBacking("/ours", end))
	over := externalSource("/ours", externalBacking("/master", end))
	twice := externalSource("/snap2", externalBacking("/snap", externalBacking("/ours", externalBacking("/master", end))))
	for name, c := range map[string]struct {
		stored, live string
		depth        int
		base, job    string
		is           bool
	}{
		"ours on top":                         {externalDomain("/ours", ours), externalDomain("/ours", ours), 0, "", "", false},
		"off, ours on top":                    {externalDomain("/ours", ours), "", 0, "", "", false},
		"a snapshot":                          {externalDomain("/ours", snapped), externalDomain("/ours", snapped), 1, "/ours", "", true},
		"a snapshot of a snapshot":            {externalDomain("/ours", twice), externalDomain("/ours", twice), 2, "/ours", "", true},
		"a snapshot that only runs":           {externalDomain("/ours", ours), externalDomain("/ours", snapped), 1, "/ours", "", true},
		"a snapshot from when it was off":     {externalDomain("/ours", externalSource("/snap", "")), externalDomain("/ours", snapped), 1, "/ours", "", true},
		"a snapshot while it is off":          {externalDomain("/ours", externalSource("/snap", "")), "", -1, "", "", true},
		"a pulled snapshot":                   {externalDomain("/ours", externalSource("/snap", "")), externalDomain("/ours", externalSource("/snap", end)), -1, "", "", true},
		"adopted while it runs":               {externalDomain("/snap", snapped), externalDomain("/ours", snapped), 0, "", "", false},
		"another one at the next start":       {externalDomain("/other", externalSource("/other", end)), externalDomain("/ours", ours), 0, "", "", false},
		"a snapshot of what goes":             {externalDomain("/other", externalSource("/other", end)), externalDomain("/ours", snapped), 1, "/ours", "", true},
		"a domain made by hand":               {externalDomain("", snapped), externalDomain("", snapped), 0, "", "", false},
		"adopted since the start":             {externalDomain("/ours", snapped), externalDomain("", snapped), 1, "/ours", "", true},
		"to be another one, made by hand":     {externalDomain("/other", externalSource("/other", end)), externalDomain("", ours), 0, "", "", false},
		"a copy that runs":                    {externalDomain("/ours", ours), externalDomain("/ours", ours+`<mirror type="file" job="copy"><format type="qcow2"/><source file="/copy"/></mirror>`), 0, "", "copy", true},
		"a commit that runs":                  {externalDomain("/ours", snapped), externalDomain("/ours", snapped+`<mirror type="file" job="active-commit"><format type="qcow2"/><source file="/ours"/></mirror>`), 1, "/ours", "active-commit", true},
		"on top after the commit, as adopted": {externalDomain("/snap", ours), externalDomain("/ours", ours), -1, "", "", true},
		"pulled from its master":              {twoNoted(ours), twoNoted(ours), 0, "", "", true},
		"pulled, as only runs":                {twoNoted(over), twoNoted(ours), 0, "", "", true},
		"pulled, and off":                     {twoNoted(ours), "", 0, "", "", true},
		"pulled, and adopted since":           {externalDomain("/ours", ours), twoNoted(ours), 0, "", "", false},
		"over its master":                     {twoNoted(over), twoNoted(over), 0, "", "", false},
		"its master is left out":              {twoNoted(externalSource("/ours", "")), "", 0, "", "", false},
		"over a master at the next start":     {twoNoted(over), externalDomain("/ours", ours), 0, "", "", false},
	} {
		all, err := Externals(domain(t, c.stored), domain(t, c.live))
		e, is := all["root"]
		if err != nil || is != c.is || is && (e.Depth != c.depth || e.Base != c.base || e.Job != c.job || e.Target != "vda") {
			t.Errorf("%s: %v, %+v, %v", name, is, e, err)
		}
		m, err := Parse(c.stored)
		if err != nil {
			t.Fatal(err)
		}
		if c.live != "" {
			err = m.Compare(domain(t, c.live))
		}
		if _, same := m.External["root"]; err != nil || same != is {
			t.Errorf("%s: a refresh says %v, %v", name, same, err)
		}
		if slices.Contains(m.Pending, "disk root") && is {
			t.Errorf("%s: it is pending, as if a start settled it", name)
		}
	}
}

// The record of an image is valid below an overlay, too: it is still write-exclusive.
func TestAttached_RecordBelowOverlay(t *testing.T) {
	all := domain(t, externalDomain("/ours", externalSource("/snap", externalBacking("/ours", `<backingStore/>`)))).Attached()
	if len(all) != 1 {
		t.Fatal(all)
	}
	if i := all[0].Volume.Images[1]; i.AccessMode != volume.WriteExclusive || i.Generation != "g" || !slices.Equal(i.Hosts, []string{"a"}) || all[0].Noted != nil {
		t.Errorf("the image below is %+v", i)
	}
	all = domain(t, externalDomain("/ours", externalSource("/snap", ""))).Attached()
	if len(all) != 1 || len(all[0].Noted) != 1 || all[0].Noted[0].Name != "/ours" {
		t.Errorf("what is below an overlay that was made while it was off: %+v", all)
	}
}

// The metadata of a machine is ignored in another domain, such as a clone to which virt-clone gave another UUID. The records of its images
// stay valid.
func TestMetadata_OfAnotherDomain(t *testing.T) {
	text, err := Build(machines()["direct-boot"])
	if err != nil {
		t.Fatal(err)
	}
	for uuid, phase := range map[string]string{"2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0": Creating, "3b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0": ""} {
		m, err := Parse(strings.Replace(text, "<uuid>2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0", "<uuid>"+uuid, 1))
		if err != nil || m.Metadata.Phase != phase || len(m.Disks["root"].Volume.Images[0].Hosts) != 2 {
			t.Errorf("%s: %+v, %v", uuid, m, err)
		}
		metadata := domain(t, strings.Replace(text, "<uuid>2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0", "<uuid>"+uuid, 1)).Metadata()
		if err != nil || metadata.Phase != phase {
			t.Errorf("%s: %+v, %v", uuid, metadata, err)
		}
	}
}

// A disk whose chain was changed outside of virtclaim is kept unless its chain is adopted as it is, including all images known to be
// below it.
func TestMachine_Replaced(t *testing.T) {
	m, err := Parse(externalDomain("/ours", externalSource("/snap", externalBacking("/ours", `<backingStore/>`))))
	if err != nil {
		t.Fatal(err)
	}
	for want, replaced := range map[string]bool{"/ours": true, "": true, "/snap": false, "/snap /ours": false, "/snap /other": true} {
		var images []volume.Image
		for _, name := range strings.Fields(want) {
			images = append(images, volume.Image{Type: "file", Name: name})
		}
		keys := m.Replaced(Machine{Disks: map[string]Disk{"root": {Volume: volume.Volume{Images: images}}}})
		if (len(keys) == 1) != replaced {
			t.Errorf("%q replaces %v", want, keys)
		}
	}
}

// A disk that was pulled from its master is never put over the master again, but can be adopted as it is.
func TestMachine_ReplacedPulled(t *testing.T) {
	m, err := Parse(twoNoted(externalSource("/ours", `<backingStore/>`)))
	if err != nil || !m.External["root"].Cut {
		t.Fatalf("%+v, %v", m.External, err)
	}
	for n, replaced := range map[int]bool{0: true, 1: false, 2: true} {
		images := []volume.Image{{Type: "file", Name: "/ours"}, {Type: "network", Name: "/master"}}[:n]
		keys := m.Replaced(Machine{Disks: map[string]Disk{"root": {Volume: volume.Volume{Images: images}}}})
		if (len(keys) == 1) != replaced {
			t.Errorf("%d images replace %v", n, keys)
		}
	}
}

// An unmanaged domain has no records: an image that is to be defined and that is below another image there is below an overlay.
func TestMachine_AddOverlaid(t *testing.T) {
	text := externalDomain("", externalSource("/snap", externalBacking("/ours", `<backingStore/>`)))
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := Machine{Disks: map[string]Disk{"root": {Volume: volume.Volume{Images: []volume.Image{{Type: "file", Name: "/ours"}}}}}}
	for _, running := range []bool{false, true} {
		if running {
			text = strings.Replace(text, "<domain ", `<domain id="1" `, 1)
		}
		if m.AddOverlaid(domain(t, text), want); !slices.Equal(m.Replaced(want), []string{"root"}) || m.External["root"].Live != running {
			t.Errorf("running %v: %+v, %v", running, m.External, err)
		}
	}
}
