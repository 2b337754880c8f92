package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func tcp(host string, number int64) volume.Server { return volume.Server{Host: host, Port: &number} }

func networkImage(protocol, name string, servers ...volume.Server) volume.Image {
	return volume.Image{Type: "network", Format: "raw", Protocol: protocol, Name: name, Servers: servers, AccessMode: volume.WriteExclusive}
}

// images returns an image of each kind, with the source that libvirt is to get.
func images() map[string]struct {
	image volume.Image
	want  string
} {
	type c = struct {
		image volume.Image
		want  string
	}
	with := func(i volume.Image, change func(*volume.Image)) volume.Image {
		change(&i)
		return i
	}
	web := networkImage("https", "/images/a b.img", tcp("web.example", 443))
	web.TLS, web.TLSVerify = true, true
	return map[string]c{
		"iscsi": {
			with(networkImage("iscsi", "iqn.2026-01.io.example:disk/1", tcp("2001:db8::1", 3260)), func(i *volume.Image) {
				i.Initiator, i.Auth = "iqn.2026-01.io.example:node", &volume.Auth{Type: "iscsi", Username: "u", SecretUUID: "5f0c"}
			}),
			`<source protocol="iscsi" name="iqn.2026-01.io.example:disk/1"><host name="2001:db8::1" port="3260"></host>` +
				`<initiator><iqn name="iqn.2026-01.io.example:node"></iqn></initiator>` +
				`<auth username="u"><secret type="iscsi" uuid="5f0c"></secret></auth></source>`,
		},
		"rbd": {
			with(networkImage("rbd", "pool/namespace/image", tcp("192.0.2.1", 6789), tcp("2001:db8::1", 3300)), func(i *volume.Image) {
				i.Auth = &volume.Auth{Type: "ceph", Username: "admin", SecretUUID: "5f0c"}
			}),
			`<source protocol="rbd" name="pool/namespace/image"><host name="192.0.2.1" port="6789"></host>` +
				`<host name="2001:db8::1" port="3300"></host>` +
				`<auth username="admin"><secret type="ceph" uuid="5f0c"></secret></auth></source>`,
		},
		"nbd": {
			networkImage("nbd", "an export", tcp("nbd.example", 10809)),
			`<source protocol="nbd" name="an export"><host name="nbd.example" port="10809"></host></source>`,
		},
		"nbd with TLS": {
			with(networkImage("nbd", "", tcp("nbd.example", 10809)), func(i *volume.Image) { i.TLS, i.TLSVerify = true, true }),
			`<source protocol="nbd" tls="yes"><host name="nbd.example" port="10809"></host></source>`,
		},
		"nbd over a socket": {
			networkImage("nbd", "x", volume.Server{Transport: "unix", Socket: "/run/nbd.sock"}),
			`<source protocol="nbd" name="x"><host transport="unix" socket="/run/nbd.sock"></host></source>`,
		},
		"gluster": {
			networkImage("gluster", "volume/sub/disk.img", tcp("g1", 24007), tcp("g2", 24007)),
			`<source protocol="gluster" name="volume/sub/disk.img"><host name="g1" port="24007"></host><host name="g2" port="24007"></host></source>`,
		},
		"nfs": {
			with(networkImage("nfs", "/exports/a/disk.img", volume.Server{Host: "nfs.example"}), func(i *volume.Image) { i.User, i.Group = "0", "107" }),
			`<source protocol="nfs" name="/exports/a/disk.img"><host name="nfs.example"></host><identity user="+0" group="+107"></identity></source>`,
		},
		"http": {
			with(networkImage("http", "/a", tcp("web.example", 8080)), func(i *volume.Image) { i.Query = `id=1&key="<b>"` }),
			`<source protocol="http" name="/a" query="id=1&amp;key=&#34;&lt;b&gt;&#34;"><host name="web.example" port="8080"></host></source>`,
		},
		"https": {
			web, `<source protocol="https" name="/images/a b.img"><host name="web.example" port="443"></host></source>`,
		},
		"https without verification": {
			with(web, func(i *volume.Image) { i.TLSVerify = false }),
			`<source protocol="https" name="/images/a b.img"><host name="web.example" port="443"></host><ssl verify="no"></ssl></source>`,
		},
		"block": {
			volume.Image{Type: "block", Format: "raw", Name: "/dev/vg/lv", AccessMode: volume.WriteExclusive},
			`<source dev="/dev/vg/lv"></source>`,
		},
		"file": {
			volume.Image{Type: "file", Format: "raw", Name: "/mnt/<a>/disk.img", AccessMode: volume.WriteExclusive},
			`<source file="/mnt/&lt;a&gt;/disk.img"></source>`,
		},
	}
}

// deviceOf returns the <disk> that opens an image, on one line.
func deviceOf(t *testing.T, i volume.Image) (libvirtxml.DomainDisk, string) {
	t.Helper()
	d := libvirtxml.DomainDisk{Device: Fixed, Alias: &libvirtxml.DomainAlias{Name: diskAlias + "data"}}
	applyDisk(&d, Disk{Volume: volume.Volume{Images: []volume.Image{i}}, Device: Fixed, Bus: "virtio"})
	text, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var read libvirtxml.DomainDisk
	if err := read.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for n := range lines {
		lines[n] = strings.TrimSpace(lines[n])
	}
	return read, strings.Join(lines, "")
}

func TestVolume_SourceOfEachImage(t *testing.T) {
	for name, c := range images() {
		t.Run(name, func(t *testing.T) {
			_, text := deviceOf(t, c.image)
			start, end := strings.Index(text, "<source"), strings.Index(text, "</source>")+len("</source>")
			if diff := cmp.Diff(c.want, text[start:end]); diff != "" {
				t.Errorf("the source differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVolume_EachImageIsReadBack(t *testing.T) {
	for name, c := range images() {
		for _, mode := range []volume.AccessMode{volume.WriteExclusive, volume.WriteShared, volume.ReadShared} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				c.image.AccessMode = mode
				device, _ := deviceOf(t, c.image)
				if diff := cmp.Diff(volume.Volume{Images: []volume.Image{c.image}}, parseVolume(device)); diff != "" {
					t.Errorf("read back differs (-built +read):\n%s", diff)
				}
			})
		}
	}
}

func TestVolume_ImageBelowOverlayIsReadBack(t *testing.T) {
	top := volume.Image{Type: "file", Format: "qcow2", Name: "/pools/ssd/web.qcow2", AccessMode: volume.WriteExclusive}
	for name, c := range images() {
		t.Run(name, func(t *testing.T) {
			c.image.AccessMode = volume.ReadShared
			m := Machine{Name: "m", VCPUs: 1, Memory: 131072, DomainType: "qemu", Disks: map[string]Disk{
				"root": {Device: Fixed, Bus: "virtio", Volume: volume.Volume{Images: []volume.Image{top, c.image}}},
			}}
			got, err := Parse(build(t, m))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, anyTarget); diff != "" {
				t.Errorf("read back differs (-built +read):\n%s", diff)
			}
		})
	}
}

func TestVolume_AccessModes(t *testing.T) {
	for name, c := range map[string]struct {
		image               volume.Image
		mode                volume.AccessMode
		readonly, shareable bool
		cache               string
	}{
		"network, exclusive":    {images()["rbd"].image, volume.WriteExclusive, false, false, "none"},
		"network, write-shared": {images()["rbd"].image, volume.WriteShared, false, true, "none"},
		"network, read-shared":  {images()["rbd"].image, volume.ReadShared, true, true, "none"},
		"file, exclusive":       {images()["file"].image, volume.WriteExclusive, false, false, ""},
		"file, write-shared":    {images()["file"].image, volume.WriteShared, false, true, "none"},
		"file, read-shared":     {images()["file"].image, volume.ReadShared, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.image.AccessMode = c.mode
			d, _ := deviceOf(t, c.image)
			if d.ReadOnly != nil != c.readonly || d.Shareable != nil != c.shareable || d.Driver.Cache != c.cache {
				t.Errorf("readonly %v, shareable %v, cache %q", d.ReadOnly != nil, d.Shareable != nil, d.Driver.Cache)
			}
		})
	}
}

func TestVolume_WriteSharedDropsCache(t *testing.T) {
	d := libvirtxml.DomainDisk{Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw", Cache: "writeback"}}
	i := images()["file"].image
	i.AccessMode = volume.WriteShared
	applyDisk(&d, Disk{Volume: volume.Volume{Images: []volume.Image{i}}, Device: Fixed, Bus: "virtio"})
	if d.Driver.Cache != "none" {
		t.Errorf("the cache is %s", d.Driver.Cache)
	}
}

// Each image of a chain has an explicit format and the chain an explicit end, so that QEMU probes no content that a guest has written.
func TestDiskXML_NamesFormatsAndEndsChain(t *testing.T) {
	over := volume.Image{Type: "file", Format: "qcow2", Name: "/pool/web.qcow2"}
	for name, c := range map[string]struct {
		images []volume.Image
		want   []string
	}{
		"qcow2 of a binding": {
			[]volume.Image{{Type: "file", Format: "qcow2", Name: "/a", Binding: "b"}}, []string{`type="qcow2"`, `<backingStore></backingStore>`},
		},
		"disk": {
			[]volume.Image{{Type: "file", Format: "qcow2", Name: "/a", Generation: "g"}}, []string{`type="qcow2"`, `<backingStore></backingStore>`},
		},
		"raw":   {[]volume.Image{networkImage("rbd", "pool/image")}, []string{`<driver name="qemu" type="raw"`}},
		"chain": {[]volume.Image{over, networkImage("rbd", "pool/image")}, []string{`type="qcow2"`, `<format type="raw">`, `<backingStore></backingStore>`}},
	} {
		xml, err := DiskXML(volume.Volume{Images: c.images})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(xml, want) {
				t.Errorf("%s: no %s in %s", name, want, xml)
			}
		}
	}
}

// The end below an overlay's master is restored, too: libvirt drops it from the definition after a snapshot of a domain that is off.
func TestUpdate_EndsChainsOfOverlays(t *testing.T) {
	m := Machine{Name: "m", VCPUs: 1, Memory: 131072, DomainType: "qemu", Disks: map[string]Disk{
		"root": {Device: Fixed, Bus: "virtio", Volume: volume.Volume{Images: []volume.Image{
			{Type: "file", Format: "qcow2", Name: "/pool/web", AccessMode: volume.WriteExclusive, Generation: "7b0c4b0e-52c6-4d0e-9f43-0e4a3a0a8a11"},
			{Type: "file", Format: "qcow2", Name: "/pool/master", AccessMode: volume.ReadShared, Generation: "7b0c4b0e-52c6-4d0e-9f43-0e4a3a0a8a12"},
		}}},
	}}
	const end = "<backingStore></backingStore>"
	whole := build(t, m)
	former := strings.Replace(whole, end, "", 1)
	if former == whole {
		t.Fatal("the chain is not ended at first")
	}
	if now, err := domain(t, former).Update(m); err != nil || strings.Count(now, end) != 1 {
		t.Errorf("its chain is not ended: %v\n%s", err, now)
	}
}

// Update ends the chains of older definitions and changes nothing else of the machine. Backing files of images that virtclaim did not
// create are left to their header.
func TestUpdate_EndsChains(t *testing.T) {
	const end = "<backingStore></backingStore>"
	without := Machine{Name: "m", VCPUs: 1, Memory: 131072, DomainType: "qemu", Disks: map[string]Disk{
		"root": {Device: Fixed, Bus: "virtio", Volume: volume.Volume{Images: []volume.Image{
			{Type: "file", Format: "qcow2", Name: "/pool/web", AccessMode: volume.WriteExclusive},
		}}},
	}}
	former := build(t, without)
	if strings.Contains(former, end) {
		t.Fatal("the chain of an image without an identity is ended")
	}
	known := without
	known.Disks = map[string]Disk{"root": without.Disks["root"]}
	root := known.Disks["root"]
	root.Volume.Images = []volume.Image{root.Volume.Images[0]}
	root.Volume.Images[0].Generation = "7b0c4b0e-52c6-4d0e-9f43-0e4a3a0a8a11"
	known.Disks["root"] = root
	now, err := domain(t, former).Update(known)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(now, end) {
		t.Errorf("its chain is not ended:\n%s", now)
	}
	for _, live := range []string{former, now} { // libvirt reports the end in either case
		if pending, err := domain(t, live).Pending(without); err != nil || len(pending) != 0 {
			t.Errorf("pending: %v %v", pending, err)
		}
	}
}

// The element says what a machine's own disk says, but for the alias, and is read as the same volume.
func TestGuestDiskXML_IsReadBack(t *testing.T) {
	top := volume.Image{Type: "file", Format: "qcow2", Name: "/pools/ssd/web.qcow2", AccessMode: volume.WriteExclusive, Generation: "x"}
	for name, c := range images() {
		for _, mode := range []volume.AccessMode{volume.WriteExclusive, volume.WriteShared, volume.ReadShared} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				master := c.image
				master.AccessMode = volume.ReadShared
				c.image.AccessMode = mode
				for _, v := range []volume.Volume{
					{Images: []volume.Image{c.image}},
					{Images: []volume.Image{top, master}, CopyOnRead: true},
				} {
					isReadBack(t, v)
				}
			})
		}
	}
}

func isReadBack(t *testing.T, v volume.Volume) {
	t.Helper()
	text, err := GuestDiskXML(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "alias") || strings.Contains(text, "virtclaim") {
		t.Errorf("it is a disk of ours: %s", text)
	}
	var device libvirtxml.DomainDisk
	if err := device.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	m, err := Parse(`<domain type="kvm"><name>x</name><devices>` + text + `</devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Volume{CopyOnRead: v.CopyOnRead, Images: append([]volume.Image{}, v.Images...)}
	want.Images[0].Generation = "" // of the metadata
	disk := m.Disks["vda"]
	if diff := cmp.Diff(want, disk.Volume); diff != "" || disk.Bus != "virtio" || disk.Target != "vda" || len(m.Disks) != 1 {
		t.Errorf("%+v is read back differently (-built +read):\n%s", m.Disks, diff)
	}
	ours := libvirtxml.DomainDisk{Device: Fixed, Alias: &libvirtxml.DomainAlias{Name: diskAlias + "root"}}
	applyDisk(&ours, Disk{Volume: v, Device: Fixed, Bus: "virtio", Target: "vda"})
	ours.Alias = nil
	if of, err := ours.Marshal(); err != nil || of != text {
		t.Errorf("a machine's disk is %s, %v; and not %s", of, err, text)
	}
}

func TestGuestDiskXML_Refused(t *testing.T) {
	file := volume.Image{Type: "file", Format: "raw", Name: "/a", AccessMode: volume.WriteExclusive}
	with := func(change func(*volume.Image)) []volume.Image {
		i := file
		change(&i)
		return []volume.Image{i}
	}
	for name, c := range map[string]struct {
		images []volume.Image
		want   string
	}{
		"no image":             {nil, "has no images"},
		"folder":               {with(func(i *volume.Image) { i.Type, i.Format = "dir", "dir" }), "/a/\" is a folder"},
		"folder of a master":   {append(with(func(i *volume.Image) { i.Format = "qcow2" }), with(func(i *volume.Image) { i.Type = "dir" })...), "can't say"},
		"volume of a pool":     {with(func(i *volume.Image) { i.Type, i.Name = "volume", "pool/a" }), "can't say"},
		"without a format":     {with(func(i *volume.Image) { i.Format = "" }), "can't say"},
		"character beyond XML": {with(func(i *volume.Image) { i.Name = "/a\x01" }), "can't say"},
		"nowhere":              {with(func(i *volume.Image) { i.Name = "" }), "can't say"},
		"no access mode":       {with(func(i *volume.Image) { i.AccessMode = "" }), "can't say"},
		"unknown access mode":  {with(func(i *volume.Image) { i.AccessMode = "read-only" }), "can't say"},
		"carriage return":      {with(func(i *volume.Image) { i.Name = "/a\r\nb" }), ""},
		"NBD of any server": {with(func(i *volume.Image) {
			*i = networkImage("nbd", "x", tcp("a", 1))
			i.TLS, i.AccessMode = true, volume.ReadShared
		}), "can't say"},
	} {
		switch text, err := GuestDiskXML(volume.Volume{Images: c.images}); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300):
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
