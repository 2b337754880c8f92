package volume

import (
	"reflect"
	"testing"
)

func number(n int64) *int64 { return &n }

func TestImage_URI(t *testing.T) {
	portal := []Server{{Host: "10.0.0.5", Port: number(3260)}}
	for uri, i := range map[string]Image{
		"":                       {Type: "file"},
		"/srv/a b%20?#:.img":     {Type: "file", Name: "/srv/a b%20?#:.img"},
		"/dev/vg/lv":             {Type: "block", Name: "/dev/vg/lv"},
		"block:/var/lib/x/dev":   {Type: "block", Name: "/var/lib/x/dev"},
		"file:/dev/shm/disk.img": {Type: "file", Name: "/dev/shm/disk.img"},
		"/mnt/claim/":            {Type: "dir", Name: "/mnt/claim"},
		"/dev/shm/claim/":        {Type: "dir", Name: "/dev/shm/claim"},
		"/":                      {Type: "dir", Name: "/"},
		"dir:rel":                {Type: "dir", Name: "rel"},
		"dir:/a/":                {Type: "dir", Name: "/a/"},
		"file:/a/":               {Type: "file", Name: "/a/"},
		"block:/dev/a/":          {Type: "block", Name: "/dev/a/"},
		"volume:pool/a":          {Type: "volume", Name: "pool/a"},
		"file:rel.img":           {Type: "file", Name: "rel.img"},
		"file:rbd:pool/a":        {Type: "file", Name: "rbd:pool/a"},
		"file:json:{\"a\": 1}":   {Type: "file", Name: `json:{"a": 1}`},
		"file:nbd://a/b":         {Type: "file", Name: "nbd://a/b"},
		"rbd:pool/space/a@b:c":   {Type: "network", Protocol: "rbd", Name: "pool/space/a@b:c"},
		"iscsi://10.0.0.5:3260/iqn.2020-01.org.example:vol/1": {
			Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:vol/1", Servers: portal,
		},
		"iscsi+iser://10.0.0.5:3260/iqn.2020-01.org.example:vol/1": {
			Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:vol/1",
			Servers: []Server{{Host: "10.0.0.5", Port: number(3260), Transport: "iser"}},
		},
		"nbd://[2001:db8::1]:10809": {
			Type: "network", Protocol: "nbd", Servers: []Server{{Host: "2001:db8::1", Port: number(10809)}},
		},
		"nbds://nbd.example:1/a%20b%3Fc%25": {
			Type: "network", Protocol: "nbd", Name: "a b?c%", TLS: true, TLSVerify: true, Servers: []Server{{Host: "nbd.example", Port: number(1)}},
		},
		"nbd://h//a": {Type: "network", Protocol: "nbd", Name: "/a", Servers: []Server{{Host: "h"}}},
		"nbd+unix:///a?socket=/run/a%20b%26c": {
			Type: "network", Protocol: "nbd", Name: "a", Servers: []Server{{Transport: "unix", Socket: "/run/a b&c"}},
		},
		"gluster+rdma://g1:24007/vol/vms/a.img": {
			Type: "network", Protocol: "gluster", Name: "vol/vms/a.img",
			Servers: []Server{{Host: "g1", Port: number(24007), Transport: "rdma"}},
		},
		"nfs://[fe80::1]/export/a.img?gid=0&uid=1000": {
			Type: "network", Protocol: "nfs", Name: "/export/a.img", User: "1000", Group: "0", Servers: []Server{{Host: "fe80::1"}},
		},
		"https://images.example:443/a%20b.raw?x=%2F&y=://": {
			Type: "network", Protocol: "https", Name: "/a b.raw", Query: "x=%2F&y=://", TLS: true, TLSVerify: true,
			Servers: []Server{{Host: "images.example", Port: number(443)}},
		},
		"http://h:80/":  {Type: "network", Protocol: "http", Name: "/", Servers: []Server{{Host: "h", Port: number(80)}}},
		"sheepdog:///a": {Type: "network", Protocol: "sheepdog", Name: "a"},
	} {
		if is := i.URI(); is != uri {
			t.Errorf("%+v is %q, and not %q", i, is, uri)
		}
		if is, err := ParseURI(uri); err != nil || !reflect.DeepEqual(is, i) {
			t.Errorf("%q is %+v (%v), and not %+v", uri, is, err, i)
		}
	}
}

func TestParseURI_RefusesOthers(t *testing.T) {
	for _, uri := range []string{"disk.img", "iqn.2020-01.org.example:a/1", "nbd://h:x/a", "nbd://h/%zz", "nbd://a:b:1/c", "nfs://h/a?%zz"} {
		if i, err := ParseURI(uri); err == nil {
			t.Errorf("%q is %+v", uri, i)
		}
	}
}

func TestServer_String(t *testing.T) {
	for text, s := range map[string]Server{
		"mon.example:6789": {Host: "mon.example", Port: number(6789)}, "mon.example": {Host: "mon.example"},
		"[2001:db8::1]:3300": {Host: "2001:db8::1", Port: number(3300)}, "[::1]": {Host: "::1"},
		"rdma://g2:24007": {Host: "g2", Port: number(24007), Transport: "rdma"}, "unix:///run/a:b": {Transport: "unix", Socket: "/run/a:b"},
	} {
		if is := s.String(); is != text {
			t.Errorf("%+v is %q, and not %q", s, is, text)
		}
		if is, err := ParseServer(text); err != nil || !reflect.DeepEqual(is, s) {
			t.Errorf("%q is %+v (%v), and not %+v", text, is, err, s)
		}
	}
}

func TestImage_FurtherServers(t *testing.T) {
	servers := []Server{{Host: "a"}, {Host: "b", Port: number(1)}}
	for protocol, want := range map[string][]string{"rbd": {"a", "b:1"}, "gluster": {"b:1"}} {
		if is := (Image{Type: "network", Protocol: protocol, Servers: servers}).FurtherServers(); !reflect.DeepEqual(is, want) {
			t.Errorf("%s has %v, and not %v", protocol, is, want)
		}
	}
}

func FuzzImage_URI(f *testing.F) {
	f.Add("nbd", "a?b", "::1", "/run/s", "1", uint16(1))
	f.Add("https", "/a%20", "h", "", "", uint16(0))
	f.Add("rbd", "pool/a", "mon", "", "", uint16(0))
	f.Add("", "/mnt/claim", "folder", "", "", uint16(0))
	f.Add("", "/dev/a/", "", "", "", uint16(0))
	f.Fuzz(func(t *testing.T, protocol, name, host, socket, user string, at uint16) {
		i := Image{Type: "network", Protocol: protocol, Name: name}
		switch protocol {
		case "http", "https", "nfs":
			i.Name = "/" + name
			i.User = user
			i.TLS, i.TLSVerify = protocol == "https", protocol == "https"
			if protocol != "nfs" {
				i.Query, i.User = user, ""
			}
			i.Servers = []Server{{Host: "h" + host, Port: number(int64(at))}}
		case "iscsi", "gluster":
			i.Servers = []Server{{Host: "h" + host, Port: number(int64(at)), Transport: "rdma"}}
		case "nbd":
			i.Servers = []Server{{Transport: "unix", Socket: "/" + socket}}
		case "rbd":
		default:
			i = Image{Type: "block", Name: name}
			if host != "" {
				i.Type = "dir"
			}
			if name == "" {
				return
			}
		}
		if is, err := ParseURI(i.URI()); err != nil || !reflect.DeepEqual(is, i) {
			t.Errorf("%+v is %q, which is %+v (%v)", i, i.URI(), is, err)
		}
	})
}
