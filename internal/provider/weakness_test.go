package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// configure returns the diagnostics of a provider configuration, whose other attributes are null.
func configure(t *testing.T, uris map[string]string, kubernetes any) (texts []string) {
	t.Helper()
	server := NewServer(Release{Version: "test"})
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var hosts any
	if uris != nil {
		of := values{}
		for key, uri := range uris {
			of[key] = values{"uri": uri}
		}
		hosts = of
	}
	config := dynamic(t, all.Provider.ValueType(), values{"hosts": hosts, "kubernetes": kubernetes})
	answer, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Diagnostics {
		texts = append(texts, d.Severity.String()+" "+d.Attribute.String()+": "+d.Summary+": "+d.Detail)
	}
	return texts
}

// Connections without encryption, or without verification of the server, are warned of once, with all hosts that have them.
func TestConfigure_WarnsOfWeaknessesOnce(t *testing.T) {
	good := map[string]string{
		"a": "qemu:///system", "b": "qemu+ssh://h/system?known_hosts_verify=auto", "c": "qemu+tls://h/system?no_verify=0", "d": "qemu://h/system",
	}
	if got := configure(t, good, values{"host": "https://a"}); len(got) > 0 {
		t.Errorf("what is safe is warned of: %q", got)
	}
	got := configure(t, map[string]string{
		"a": "qemu+tcp://h/system", "b": "qemu+tcp://i/system", "c": "qemu+tls://h/system?no_verify=1", "d": "qemu://i/system?no_verify=1",
		"e": "qemu+ssh://h/system?known_hosts_verify=ignore", "f": "qemu+ssh://i/system?no_verify=1",
	}, values{"host": "https://a", "insecure": true})
	for i, want := range [][2]string{
		{"WARNING", "without encryption: Hosts a, b: "},
		{"WARNING", "Certificates of libvirt hosts are not verified: Hosts c, d: "},
		{"WARNING", "Keys of SSH hosts are not verified: Hosts e, f: "},
		{"WARNING", "The Kubernetes API server is not verified"},
	} {
		if len(got) != 4 || !strings.HasPrefix(got[i], want[0]) || !strings.Contains(got[i], want[1]) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if got := configure(t, good, values{"host": "http://a"}); len(got) != 1 || !strings.Contains(got[0], "without encryption (http)") {
		t.Errorf("of http: %q", got)
	}
}

// No error of a configuration has its password.
func TestConfigure_TellsNoPassword(t *testing.T) {
	const password = "hunter2"
	for name, got := range map[string][]string{
		"host":  configure(t, map[string]string{"a": "qemu:///system"}, values{"host": "https://me:hunter2@a"}),
		"proxy": configure(t, map[string]string{"a": "qemu:///system"}, values{"host": "https://a", "proxy_url": "http://me:hunter2@a"}),
		"uri":   configure(t, map[string]string{"a": "qemu+tcp://me:hunter2@h/system"}, nil),
		"no":    configure(t, map[string]string{"a": "qemu+tcp://me:hunter2%zz@h/system"}, nil),
	} {
		text := strings.Join(got, " ")
		if !strings.HasPrefix(text, "ERROR") || strings.Contains(text, password) {
			t.Errorf("%s: %q", name, text)
		}
	}
}
