package function

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const secret = "5f0c5e0a-0000-4000-8000-000000000001"

func server(host string, port int64) []volume.Server {
	return []volume.Server{{Host: host, Port: &port}}
}

// network is a volume on network storage, as a binding has it.
func network(protocol, name string, change func(*volume.Image)) volume.Volume {
	capacity := int64(1 << 30)
	i := volume.Image{
		Type: "network", Protocol: protocol, Name: name, Format: "raw", AccessMode: volume.WriteExclusive,
		Hosts: []string{"node-a", "node-b"}, Binding: "default/data/data:1",
	}
	change(&i)
	return volume.Volume{Capacity: &capacity, Images: []volume.Image{i}}
}

// volumes are one of each kind, and what their elements have.
func volumes() map[string]struct {
	volume volume.Volume
	want   []string
} {
	type c = struct {
		volume volume.Volume
		want   []string
	}
	rbd := network("rbd", "pool/image", func(i *volume.Image) {
		i.Servers = append(server("192.0.2.1", 6789), server("2001:db8::1", 3300)...)
		i.Auth = &volume.Auth{Type: "ceph", Username: "admin", SecretUUID: secret}
	})
	master := network("rbd", "pool/golden", func(i *volume.Image) {
		*i = rbd.Images[0]
		i.Name, i.AccessMode = "pool/golden", volume.ReadShared
	})
	overlay := volume.Image{
		Type: "file", Format: "qcow2", Name: "/srv/<fast>/web.qcow2", AccessMode: volume.WriteExclusive, Hosts: []string{"node-a"}, Generation: "0a1b",
	}
	return map[string]c{
		"rbd with auth": {rbd, []string{
			`<driver name="qemu" type="raw" cache="none" error_policy="stop" discard="unmap">`, `<source protocol="rbd" name="pool/image">`,
			`<host name="2001:db8::1" port="3300">`, `<auth username="admin">`, `<secret type="ceph" uuid="` + secret + `">`,
		}},
		"iscsi with auth": {network("iscsi", "iqn.2026-01.io.example:disk/1", func(i *volume.Image) {
			i.Servers, i.Initiator = server("192.0.2.1", 3260), "iqn.2026-01.io.example:node"
			i.Auth = &volume.Auth{Type: "iscsi", Username: "u", SecretUUID: secret}
		}), []string{`<iqn name="iqn.2026-01.io.example:node">`, `<secret type="iscsi" uuid="` + secret + `">`}},
		"nbd with tls": {network("nbd", "export", func(i *volume.Image) {
			i.Servers, i.TLS, i.TLSVerify, i.AccessMode = server("nbd.example", 10809), true, true, volume.WriteShared
		}), []string{`<source protocol="nbd" name="export" tls="yes">`, "<shareable>"}},
		"nfs": {network("nfs", "/exports/a/disk.img", func(i *volume.Image) {
			i.Servers, i.User, i.Group = []volume.Server{{Host: "nfs.example"}}, "0", "107"
		}), []string{`<identity user="+0" group="+107">`}},
		"overlay": {volume.Over(overlay, master.Capacity, volume.CopyOnWrite, master), []string{
			`<source file="/srv/&lt;fast&gt;/web.qcow2">`, `<driver name="qemu" type="qcow2"`, `<backingStore type="network">`, `<format type="raw">`,
			`name="pool/golden"`, `<secret type="ceph" uuid="` + secret + `">`,
		}},
		"overlay that copies": {volume.Over(overlay, nil, volume.CopyOnRead, master), []string{`copy_on_read="on"`}},
		"master":              {master, []string{"<readonly>", "<shareable>"}},
		"device": {volume.Volume{Images: []volume.Image{{
			Type: "block", Format: "raw", Name: "/dev/vg/lv", AccessMode: volume.WriteExclusive, Binding: "local/x",
		}}}, []string{`type="block" device="disk"`, `<source dev="/dev/vg/lv">`}},
	}
}

func TestDiskXML_EachVolumeIsReadBack(t *testing.T) {
	for name, c := range volumes() {
		t.Run(name, func(t *testing.T) {
			got, wrong := call(t, diskXML(), tfvalue.VolumeObject(c.volume, tfvalue.Unknowns{}))
			if wrong != nil {
				t.Fatal(wrong)
			}
			text := got.(types.String).ValueString()
			for _, part := range append(c.want, `<target dev="vda" bus="virtio">`) {
				if !strings.Contains(text, part) {
					t.Errorf("it has no %s: %s", part, text)
				}
			}
			var device libvirtxml.DomainDisk
			if err := device.Unmarshal(text); err != nil || device.Alias != nil || strings.Contains(text, "virtclaim") {
				t.Errorf("%v: %s", err, text)
			}
			isRead(t, text, c.volume)
		})
	}
}

// isRead checks that a domain with a disk is read as one with a volume, but for what only our metadata have.
func isRead(t *testing.T, element string, want volume.Volume) {
	t.Helper()
	m, err := domainxml.Parse(`<domain type="kvm"><name>x</name><devices>` + element + `</devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	want.Capacity, want.Images = nil, append([]volume.Image{}, want.Images...)
	for n := range want.Images {
		want.Images[n].Hosts, want.Images[n].Binding, want.Images[n].Generation = nil, "", ""
	}
	if diff := cmp.Diff(want, m.Disks["vda"].Volume); diff != "" {
		t.Errorf("it is read back differently (-want +got):\n%s", diff)
	}
}

// with is a volume of a file with another value of its only image, or of the volume itself.
func with(name string, value attr.Value) types.Object {
	only := volume.Image{Type: "file", Format: "raw", Name: "/srv/a.img", AccessMode: volume.WriteExclusive}
	o := tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{only}}, tfvalue.Unknowns{})
	all := o.Attributes()
	if _, isOfVolume := all[name]; isOfVolume {
		all[name] = value
		return types.ObjectValueMust(tfvalue.VolumeTypes, all)
	}
	list := all["images"].(types.List)
	image := list.Elements()[0].(types.Object)
	changed := maps.Clone(image.Attributes())
	changed[name] = value
	of := list.ElementType(context.Background()).(types.ObjectType)
	all["images"] = types.ListValueMust(of, []attr.Value{types.ObjectValueMust(of.AttrTypes, changed)})
	return types.ObjectValueMust(tfvalue.VolumeTypes, all)
}

func TestDiskXML_Refused(t *testing.T) {
	images := tfvalue.VolumeTypes["images"].(types.ListType).ElemType
	for name, c := range map[string]struct {
		volume types.Object
		want   string
	}{
		"no images":   {with("images", types.ListNull(images)), "has no images"},
		"folder":      {with("uri", types.StringValue("/srv/share/")), `"/srv/share/" is a folder`},
		"no uri":      {with("uri", types.StringNull()), "can't say all of the volume"},
		"no format":   {with("format", types.StringNull()), "can't say all of the volume"},
		"read-only":   {with("access_mode", types.StringValue("read-only")), "can't say all of the volume"},
		"not printed": {with("uri", types.StringValue("/srv/a\x01")), "can't say all of the volume"},
		"another uri": {with("uri", types.StringValue("a.img")), "is no uri of an image"},
		"long uri":    {with("uri", types.StringValue(strings.Repeat("ä", 9999))), "ä…"}, // it is cut
		"bad server": {
			with("servers", types.ListValueMust(types.StringType, []attr.Value{types.StringValue("a:b")})), `"a:b" is no server`,
		},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, diskXML(), c.volume, c.want) })
	}
}

// An element without the UUID of its secret, as a plan would have it, is of no use: it is unknown as a whole.
func TestDiskXML_PartlyUnknown(t *testing.T) {
	v := volumes()["rbd with auth"].volume
	for _, unknown := range []types.Object{
		tfvalue.VolumeObject(v, tfvalue.Unknowns{Secret: true}), tfvalue.VolumeObject(v, tfvalue.Unknowns{Binding: true}),
		with("images", types.ListUnknown(tfvalue.VolumeTypes["images"].(types.ListType).ElemType)),
	} {
		if got, err := call(t, diskXML(), unknown); err != nil || !got.IsUnknown() {
			t.Errorf("%s is %s, %v", unknown, got, err)
		}
	}
}
