package volume

import (
	"fmt"
	"testing"
)

func port(n int64) *int64 { return &n }

func iscsi(name, portal string) Image {
	return Image{Type: "network", Protocol: "iscsi", Name: name, Servers: []Server{{Host: portal, Port: port(3260)}}}
}

func network(protocol, name string, servers ...Server) Image {
	return Image{Type: "network", Protocol: protocol, Name: name, Servers: servers}
}

func onHosts(i Image, hosts ...string) Image {
	i.Hosts = hosts
	return i
}

func withQuery(query string) Image {
	i := network("http", "/a", Server{Host: "h"})
	i.Query = query
	return i
}

func local(kind, path, generation string, hosts ...string) Image {
	return Image{Type: kind, Name: path, Generation: generation, Hosts: hosts}
}

func TestSameStorage(t *testing.T) {
	const iqn = "iqn.2001-04.com.example:disk"
	tests := []struct {
		name string
		a, b Image
		want bool
	}{
		{"iscsi through another portal", iscsi(iqn+"/1", "a"), iscsi(iqn+"/1", "b"), true},
		{"iscsi in another case", iscsi(iqn+"/1", "a"), iscsi("IQN.2001-04.com.example:DISK/1", "a"), true},
		{"iscsi without and with unit 0", iscsi(iqn, "a"), iscsi(iqn+"/0", "a"), true},
		{"iscsi unit with leading zeros", iscsi(iqn+"/001", "a"), iscsi(iqn+"/1", "a"), true},
		{"iscsi unit 1 and 10", iscsi(iqn+"/1", "a"), iscsi(iqn+"/10", "a"), false},
		{"iscsi other unit", iscsi(iqn+"/1", "a"), iscsi(iqn+"/2", "a"), false},
		{"iscsi other target", iscsi(iqn+"/1", "a"), iscsi(iqn+"2/1", "a"), false},
		{
			"iscsi that another host has logged in to", onHosts(iscsi(iqn+"/1", "a"), "h1"),
			local("block", "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-"+iqn+"-lun-1", "", "h2"), true,
		},
		{"iscsi in a pool of iscsi-direct", iscsi(iqn+"/0", "a"), local("file", "ip-a:3260-iscsi-"+iqn+"-lun-0", "", "h"), true},
		{"a partition of an iscsi unit", iscsi(iqn+"/1", "a"), partition(iqn, 2), false},
		{"two partitions of an iscsi unit", partition(iqn, 1), partition(iqn, 2), false},
		{"a partition of an iscsi unit from another host", partition(iqn, 1), onHosts(partition(iqn, 1), "other"), true},
		{"iscsi of another unit that a host has logged in to", iscsi(iqn+"/1", "a"), local("block", "/dev/disk/by-path/ip-a:3260-iscsi-"+iqn+"-lun-10", "", "h"), false},
		{"a file whose path is spelled otherwise", local("file", "/claims/a/disk.img", "", "h"), local("file", "/claims//b/./../a/disk.img", "", "h"), true},
		{"files of two folders", local("file", "/claims/a/disk.img", "", "h"), local("file", "/claims/b/disk.img", "", "h"), false},
		{"iscsi against nbd", iscsi("x", "a"), network("nbd", "x", Server{Host: "a"}), false},

		{
			"rbd with a common monitor", network("rbd", "pool/image", Server{Host: "m1", Port: port(6789)}, Server{Host: "m2"}),
			network("rbd", "pool/image", Server{Host: "m3"}, Server{Host: "M2", Port: port(6789)}), true,
		},
		{
			"rbd without a common monitor", network("rbd", "pool/image", Server{Host: "m1"}),
			network("rbd", "pool/image", Server{Host: "m2"}), false,
		},
		{
			"rbd through both ports of a monitor", network("rbd", "pool/image", Server{Host: "m1", Port: port(6789)}),
			network("rbd", "pool/image", Server{Host: "m1", Port: port(3300)}), true,
		},
		{
			"rbd through another port of another monitor", network("rbd", "pool/image", Server{Host: "m1", Port: port(6789)}),
			network("rbd", "pool/image", Server{Host: "m2", Port: port(3300)}), false,
		},
		{"rbd with the host's own monitors", network("rbd", "pool/image", Server{Host: "m1"}), network("rbd", "pool/image"), true},
		{"rbd other image", network("rbd", "pool/a", Server{Host: "m"}), network("rbd", "pool/b", Server{Host: "m"}), false},
		{"nbd default port", network("nbd", "x", Server{Host: "h"}), network("nbd", "x", Server{Host: "h", Port: port(10809)}), true},
		{"nbd other port", network("nbd", "x", Server{Host: "h"}), network("nbd", "x", Server{Host: "h", Port: port(10810)}), false},
		{
			"nbd over the same socket", network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}),
			network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}), true,
		},
		{
			"nbd over another socket", network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}),
			network("nbd", "x", Server{Transport: "unix", Socket: "/run/other"}), false,
		},
		{
			"nbd over a socket of another host", onHosts(network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}), "h1"),
			onHosts(network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}), "h2"), false,
		},
		{
			"nbd over a socket of a common host", onHosts(network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}), "h1"),
			onHosts(network("nbd", "x", Server{Transport: "unix", Socket: "/run/nbd"}), "h1", "h2"), true,
		},
		{
			"nfs on the same server", network("nfs", "/exports/a/disk.img", Server{Host: "h"}),
			onHosts(network("nfs", "/exports/a/disk.img", Server{Host: "H", Port: port(2049)}), "h1"), true,
		},
		{
			"nfs with another path", network("nfs", "/exports/a/disk.img", Server{Host: "h"}),
			network("nfs", "/exports/b/disk.img", Server{Host: "h"}), false,
		},
		{
			"nfs as another user",
			Image{Type: "network", Protocol: "nfs", Name: "/a", User: "0", Servers: []Server{{Host: "h"}}},
			Image{Type: "network", Protocol: "nfs", Name: "/a", User: "107", Servers: []Server{{Host: "h"}}},
			true,
		},
		{
			"gluster through another server of the same volume", network("gluster", "v/disk.img", Server{Host: "h1"}, Server{Host: "h2"}),
			network("gluster", "v/disk.img", Server{Host: "h2", Port: port(24007)}, Server{Host: "h3"}), true,
		},
		{
			"gluster of another volume", network("gluster", "v/disk.img", Server{Host: "h"}),
			network("gluster", "w/disk.img", Server{Host: "h"}), false,
		},
		{
			"gluster over another transport", network("gluster", "v/disk.img", Server{Host: "h"}),
			network("gluster", "v/disk.img", Server{Host: "h", Transport: "rdma"}), true,
		},
		{"http with the default port", network("http", "/a", Server{Host: "h"}), network("http", "/a", Server{Host: "h", Port: port(80)}), true},
		{"http with another query", withQuery("id=1"), withQuery("id=2"), false},
		{"http with the same query", withQuery("id=1"), withQuery("id=1"), true},
		{"http against https", network("http", "/a", Server{Host: "h"}), network("https", "/a", Server{Host: "h"}), false},
		{"a server against none", network("nbd", "x", Server{Host: "h"}), network("nbd", "x"), false},

		{"file on a common host", local("file", "/a", "", "h1", "h2"), local("file", "/a", "", "h2", "h3"), true},
		{"file on other hosts", local("file", "/a", "", "h1"), local("file", "/a", "", "h2"), false},
		{"file with another path", local("file", "/a", "", "h"), local("file", "/b", "", "h"), false},
		{"device opened as file and as block", local("file", "/dev/sdb", "", "h"), local("block", "/dev/sdb", "", "h"), true},
		{"file remade", local("file", "/a", "g1", "h"), local("file", "/a", "g2", "h"), false},
		{"generation known on one side", local("file", "/a", "", "h"), local("file", "/a", "g2", "h"), true},
		{"file against network", local("file", "x", ""), network("nbd", "x"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SameStorage(tt.a, tt.b); got != tt.want {
				t.Errorf("SameStorage(%+v, %+v) = %v", tt.a, tt.b, got)
			}
		})
	}
}

func partition(iqn string, n int) Image {
	return local("block", fmt.Sprintf("/dev/disk/by-path/ip-a:3260-iscsi-%s-lun-1-part%d", iqn, n), "", "h")
}

// A partition is not the same as its whole unit, but writing to one changes the other.
func TestOverlap(t *testing.T) {
	const iqn = "iqn.2001-04.com.example:disk"
	whole, first, second := iscsi(iqn+"/1", "a"), partition(iqn, 1), partition(iqn, 2)
	if !Overlap(whole, first) || !Overlap(second, whole) || !Overlap(first, first) || Overlap(first, second) || Overlap(iscsi(iqn+"/2", "a"), first) {
		t.Error("what overlaps is taken for something else")
	}
	if same, certain := SameMaster(first, second); same || !certain {
		t.Error("another partition is the same master")
	}
}

// A folder that is bound has all that is below it; one that is shared without a binding only has other folders.
func TestOverlap_Folders(t *testing.T) {
	bound := func(i Image) Image {
		i.Binding = "b"
		return i
	}
	folder := func(name string) Image { return local("dir", name, "", "h") }
	file := func(name string) Image { return local("file", name, "", "h") }
	for _, c := range []struct {
		a, b Image
		want bool
	}{
		{bound(folder("/a")), bound(folder("/a")), true},
		{bound(folder("/a")), folder("/a/"), true},
		{bound(folder("/a")), folder("/a/b"), true},
		{bound(folder("/a/b")), folder("/a"), true},
		{bound(folder("/a/b")), folder("/"), true},
		{folder("/a"), folder("/a/../a/b"), true},
		{bound(folder("/a")), bound(folder("/ab")), false},
		{bound(folder("/a")), bound(folder("/a/../b")), false},
		{bound(folder("/a")), bound(file("/a/disk.img")), true},
		{bound(folder("/a")), file("/a/disk.img"), true},
		{folder("/a"), file("/a/disk.img"), false},
		{folder("/a"), bound(file("/a/disk.img")), false},
		{bound(file("/a")), bound(file("/a/disk.img")), false},
		{bound(folder("/a")), onHosts(bound(folder("/a/b")), "other"), false},
		{bound(folder("/")), network("nfs", "/a", Server{Host: "h"}), false},
	} {
		if Overlap(c.a, c.b) != c.want || Overlap(c.b, c.a) != c.want {
			t.Errorf("%+v and %+v: want %v", c.a, c.b, c.want)
		}
	}
}

func FuzzSameStorage(f *testing.F) {
	f.Add("network", "iscsi", "iqn.2001-04.com.example:Disk/01", "a", int64(0), "", "h1",
		"network", "iscsi", "IQN.2001-04.com.example:disk/1", "b", int64(3260), "", "h2")
	f.Add("file", "", "/a", "", int64(0), "g1", "h1", "block", "", "/a", "", int64(0), "", "h1")
	f.Add("dir", "", "/a", "", int64(0), "", "h1", "file", "", "/a/disk.img", "", int64(0), "", "h1")
	f.Add("network", "nbd", "x", "H", int64(0), "", "", "network", "nbd", "x", "h", int64(10809), "", "")
	f.Fuzz(func(t *testing.T,
		type1, protocol1, name1, server1 string, port1 int64, generation1, host1 string,
		type2, protocol2, name2, server2 string, port2 int64, generation2, host2 string,
	) {
		a := fuzzed(type1, protocol1, name1, server1, port1, generation1, host1)
		b := fuzzed(type2, protocol2, name2, server2, port2, generation2, host2)
		if !SameStorage(a, a) {
			t.Errorf("%+v is not the same as itself", a)
		}
		if SameStorage(a, b) != SameStorage(b, a) {
			t.Errorf("not symmetric: %+v and %+v", a, b)
		}
		for _, binding := range []string{"", "b"} {
			if a.Binding = binding; Overlap(a, b) != Overlap(b, a) || SameStorage(a, b) && !Overlap(a, b) {
				t.Errorf("what overlaps is not symmetric: %+v and %+v", a, b)
			}
		}
	})
}

func fuzzed(kind, protocol, name, server string, number int64, generation, host string) Image {
	i := Image{Type: kind, Protocol: protocol, Name: name, Generation: generation}
	if server != "" {
		i.Servers = []Server{{Host: server}, {Host: "always", Port: &number}}
	}
	if host != "" {
		i.Hosts = []string{host}
	}
	return i
}

func TestIsMoved(t *testing.T) {
	image := func(name, generation string) Image { return Image{Type: "file", Name: name, Generation: generation} }
	for _, c := range []struct {
		a, b  Image
		moved bool
	}{
		{image("/ssd/a", "g"), image("/ssd2/a", "g"), true},
		{image("/ssd/a", "g"), image("/ssd2/a", LastingGeneration("g")), true},
		{image("/ssd/a", "g"), image("/ssd//a", "g"), false},
		{image("/ssd/a", "g"), image("/ssd2/a", "h"), false},
		{image("/ssd/a", ""), image("/ssd2/a", ""), false},
	} {
		if got := IsMoved(c.a, c.b); got != c.moved {
			t.Errorf("%v and %v: moved is %v", c.a, c.b, got)
		}
	}
}

func TestImage_IsReferencedIn(t *testing.T) {
	file := func(name string) Image { return Image{Type: "file", Name: name} }
	unit := func(name string) Image { return Image{Type: "network", Protocol: "iscsi", Name: name} }
	export := Image{Type: "network", Protocol: "nbd", Servers: []Server{{Host: "storage"}}}
	const byPath = "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2026-01.org:a-lun-"
	for _, c := range []struct {
		image Image
		text  string
		want  bool
	}{
		{file("/ssd/root"), `<a b="/ssd/root"/>`, true},
		{file("/ssd//root"), `<a>/ssd/root</a>`, true},
		{file("/ssd/root"), `<a b='file:///ssd//root?x'/>`, true},
		{file("/ssd/roo"), `<a b="/ssd/root"/>`, false},
		{file("/ssd/root"), `<a b="/ssd/root2"/>`, false},
		{unit("iqn.2026-01.org:a/1"), `<source name="IQN.2026-01.org:A/1"/>`, true},
		{unit("iqn.2026-01.org:a/1"), `<source dev="` + byPath + `1"/>`, true},
		{unit("iqn.2026-01.org:a/1"), `<source dev="` + byPath + `1-part2"/>`, true},
		{file(byPath + "1"), `<source name="iqn.2026-01.org:a/1"/>`, true},
		{unit("iqn.2026-01.org:a/1"), `<source dev="` + byPath + `11"/>`, false},
		{unit("iqn.2026-01.org:a/1"), `<source name="iqn.2026-01.org:a/2"/>`, false},
		{unit("iqn.2026-01.org:a/0"), `<source name="iqn.2026-01.org:a"/>`, true},
		{unit("iqn.2026-01.org:a"), `<source name="iqn.2026-01.org:a/0"/>`, true},
		{unit("iqn.2026-01.org:a"), `<source name="iqn.2026-01.org:a/1"/>`, false},
		{unit("iqn.2026-01.org:a/("), `<source name="iqn.2026-01.org:a/("/>`, true},
		{Image{Type: "network", Protocol: "rbd", Name: "pool/x"}, `<source name="pool/x"/>`, true},
		{export, `<a b="nbd://storage:10809/"/>`, true},
		{export, `<host name="storage"/>`, true},
		{export, `<a b="nbd://other"/>`, false},
	} {
		if got := c.image.IsReferencedIn(c.text); got != c.want {
			t.Errorf("%s in %s: %v", c.image.Name, c.text, got)
		}
	}
}

func TestIsPair(t *testing.T) {
	of := func(host, path, generation string, mode AccessMode) Volume {
		return Volume{Images: []Image{{Type: "file", Name: path, Generation: generation, AccessMode: mode, Hosts: []string{host}}}}
	}
	bound := of("b", "/y", "1", WriteExclusive)
	bound.Images[0].Binding = "binding"
	for name, c := range map[string]struct {
		is, there Volume
		want      bool
	}{
		"the same disk":        {of("a", "/x", "1", WriteExclusive), of("b", "/y", "1", WriteExclusive), true},
		"its path not known":   {of("a", "/x", "1", WriteExclusive), of("b", "", "1", WriteExclusive), true},
		"another disk":         {of("a", "/x", "1", WriteExclusive), of("b", "/y", "2", WriteExclusive), false},
		"not known":            {of("a", "/x", "", WriteExclusive), of("b", "/y", "", WriteExclusive), false},
		"seeds":                {of("a", "/x", "1", ReadShared), of("b", "/y", "2", ReadShared), true},
		"a seed and a disk":    {of("a", "/x", "1", ReadShared), of("b", "/y", "2", WriteExclusive), false},
		"on the same host":     {of("a", "/x", "1", WriteExclusive), of("a", "/y", "1", WriteExclusive), false},
		"the other way":        {of("b", "/x", "1", WriteExclusive), of("a", "/y", "1", WriteExclusive), false},
		"a binding":            {of("a", "/x", "1", WriteExclusive), bound, false},
		"nothing on the other": {of("a", "/x", "1", WriteExclusive), Volume{}, false},
	} {
		if got := IsPair(c.is, c.there, "a", "b"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSameImages(t *testing.T) {
	chain := func(names ...string) (v Volume) {
		for _, name := range names {
			v.Images = append(v.Images, Image{Type: "file", Name: name, Generation: "00000000-0000-4000-8000-000000000001"})
		}
		return v
	}
	remade := chain("/a", "/b")
	remade.Images[1].Generation = "00000000-0000-4000-8000-000000000002"
	for name, c := range map[string]struct {
		other Volume
		want  bool
	}{
		"the same": {chain("/a", "/b"), true}, "another name": {chain("/a", "/c"), false}, "one less": {chain("/a"), false},
		"one that was recreated": {remade, false},
	} {
		if got := SameImages(chain("/a", "/b"), c.other); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
