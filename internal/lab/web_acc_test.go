//go:build acc

package lab

import (
	"fmt"
	"strings"
	"testing"
)

func webDisk(t *testing.T, protocol, server, name, more string) string {
	t.Helper()
	disk := networkDisk(t, fmt.Sprintf("protocol='%s' name='%s'", protocol, name), server, more)
	return strings.Replace(disk, "</disk>", "<readonly/></disk>", 1)
}

func addFile(t *testing.T, l *Lab) (*Web, WebFile) {
	t.Helper()
	web, err := l.Web(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := web.AddFile("images/data.img", lunSize, []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.RemoveFile(file); err != nil {
			t.Error(err)
		}
	})
	return web, file
}

func TestAccWeb_GuestReadsFromIt(t *testing.T) {
	l := sharedLab(t)
	web, file := addFile(t, l)
	guestUses(t, l.Hosts["host-a"], webDisk(t, "https", web.HTTPS, file.Name, ""), "content", func() {})
}

// TestAccWeb_HostsTrustOneServer has paused guests open the file, which is sufficient and faster than a boot.
func TestAccWeb_HostsTrustOneServer(t *testing.T) {
	l := sharedLab(t)
	h := l.Hosts["host-a"]
	web, file := addFile(t, l)
	for name, test := range map[string]struct{ protocol, server, more, problem string }{
		"HTTP":                                {"http", web.HTTP, "", ""},
		"HTTPS, trusted":                      {"https", web.HTTPS, "<ssl verify='yes'/>", ""},
		"HTTPS, trusted by default":           {"https", web.HTTPS, "", ""},
		"HTTPS, unknown":                      {"https", web.Untrusted, "<ssl verify='yes'/>", "certificate"},
		"HTTPS, unknown by default":           {"https", web.Untrusted, "", "certificate"},
		"HTTPS, unknown without verification": {"https", web.Untrusted, "<ssl verify='no'/>", ""},
	} {
		g := guest{name: "web", disk: webDisk(t, test.protocol, test.server, file.Name, test.more), log: guestLog(t, h)}
		if err := h.DefineXML(t.Context(), g.xml(h)); err != nil {
			t.Fatal(err)
		}
		out, err := h.Virsh(t.Context(), "start", "--paused", g.name)
		if (err == nil) != (test.problem == "") || !strings.Contains(out, test.problem) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if err == nil {
			virsh(t, h, "destroy", g.name)
		}
		virsh(t, h, "undefine", g.name)
	}
}
