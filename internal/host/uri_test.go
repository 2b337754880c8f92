package host

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

func TestValidateURI(t *testing.T) {
	for _, uri := range []string{
		"qemu:///system", "qemu:///session", "qemu+unix:///system?socket=/run/libvirt-sock",
		"qemu+ssh://root@host/system?keyfile=/k", "qemu+ssh://host:2222/session?known_hosts=/k%20h&known_hosts_verify=auto&proxy=netcat&netcat=ncat",
		"qemu+tls://host/system?pkipath=/pki&no_verify=1", "qemu://host/system?no_verify=1", "qemu+tcp://[2001:db8::1]:16509/system", "qemu+tls://host/system",
		"qemu+ssh://[fe80::1%25eth0]/system", "qemu+ssh://EXAMPLE%5Cme@node_a.example/system", "qemu+ssh://me@example.org@h/system?keyfile=~/.ssh/id",
	} {
		if err := ValidateURI(uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for uri, want := range map[string]string{
		"":                              `the driver ""`,
		"host-a":                        `the driver ""`,
		"xen:///system":                 `the driver "xen"; only qemu is supported`,
		"test:///default":               `the driver "test"`,
		"qemu:///":                      "must end in /system or /session",
		"qemu:///embed":                 "must end in /system or /session",
		"qemu+ssh:///system":            "names no host",
		"qemu+tcp://:16509/system":      "names no host",
		"qemu+ext:///system":            `the transport "ext"; supported are`,
		"qemu://%zz/system":             "is not a URI",
		"qemu+libssh://host/system":     `the transport "libssh", libvirt's own SSH client; write qemu+ssh`,
		"qemu+libssh2://host/system":    "write qemu+ssh",
		"qemu+ssh://me:secret@h/system": "has a password, which libvirt does not take: ssh uses a key",
		"qemu+ssh://h/system?keyfle=/k": `the parameter "keyfle"; those of the transport ssh are command, keyfile,`,
		"qemu:///system?keyfile=/k":     `the parameter "keyfile"; those of the transport unix are name, socket`,
		"qemu+ssh://h/system?proxy=x":   "proxy=x; only auto, netcat and native are known",
		"qemu+ssh://h/system?known_hosts_verify=no":       "known_hosts_verify=no; only normal, auto and ignore are known",
		"qemu+ssh://h/system?proxy=native&socket=/s":      "proxy=native, which takes neither netcat nor socket",
		"qemu+ssh://h/system?known_hosts=/%22%20Port%201": "a quotation mark",
		"qemu+ssh://h/system?keyfile=%zz":                 "parameters that can't be read",
		"qemu+ssh://me:secret@h/":                         "must end in",
		"qemu+ext://me:secret@h/system":                   "the transport",
		"qemu+tcp://me:secret@h/system":                   "has a password",
		"qemu+tls://me:secret@h/system":                   "has a password",
		"qemu+ssh://me:secret%zz@h/system":                "is not a URI",
		"qemu+ssh://-oProxyCommand=x/system":              `the host "-oProxyCommand=x"`,
		"qemu+ssh://-oProxyCommand=x@h/system":            `the user "-oProxyCommand=x"`,
		"qemu+ssh://a%20b@h/system":                       `the user "a b"`,
		"qemu+ssh://$(id)@h/system":                       `the user "$(id)"`,
		"qemu+ssh://a;id@h/system":                        `the user "a;id"`,
		"qemu+ssh://a%60id%60@h/system":                   "the user",
		"qemu+ssh://a%0Ab@h/system":                       "the user",
		"qemu+ssh://h$(id)/system":                        "the host",
		"qemu+ssh://h;id/system":                          "the host",
		"qemu+ssh://h/system?keyfile=k":                   "must be an absolute path",
		"qemu+ssh://h/system?keyfile=-oProxyCommand=x":    "must be an absolute path",
		"qemu+ssh://h/system?keyfile=/k%0A":               "a control character",
		"qemu+ssh://h/system?keyfile=/k&keyfile=/l":       "keyfile twice",
		"qemu+ssh://h/system?socket=s":                    "must be an absolute path",
		"qemu+ssh://h/system?socket=/s%1b":                "a control character",
		"qemu+ssh://h/system?netcat=nc%E2%80%AE":          "can't be seen",
		"qemu:///system?socket=-s":                        "must be an absolute path",
		"qemu+tls://h/system?pkipath=pki":                 "must be an absolute path",
	} {
		err := ValidateURI(uri)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", uri, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", uri, err)
		}
	}
}

func FuzzValidateURI(f *testing.F) {
	f.Add("qemu:///system")
	f.Add("qemu+ssh://root:pw@host:22/system?socket=/x")
	f.Fuzz(func(t *testing.T, uri string) {
		if ValidateURI(uri) != nil {
			return
		}
		parsed, err := url.Parse(uri)
		if err != nil || !strings.HasPrefix(parsed.Scheme, "qemu") {
			t.Errorf("%q was accepted", uri)
		}
	})
}

func TestURI_ErrorsHidePassword(t *testing.T) {
	f := NewRegistry(map[string]Config{"a": {URI: "qemu+tcp://me:pass-word@127.0.0.1:1/system"}})
	defer f.Close()
	h, err := f.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.LookupByName(t.Context(), "web")
	if !unreachable(err) || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	text := fmt.Sprintf("%v %+v %q", err, err, err)
	if strings.Contains(text, "pass-word") || !strings.Contains(text, "host a (qemu+tcp://me:xxxxx@127.0.0.1:1/system): libvirt can't be reached: dial tcp ") {
		t.Errorf("got %s", text)
	}
}

func TestRegistry(t *testing.T) {
	f := NewRegistry(map[string]Config{"b": {URI: "qemu:///system", Node: "node-2"}, "a": {URI: "qemu:///system"}, "bad": {URI: "%"}})
	defer f.Close()
	if _, err := f.Host("c"); err == nil || err.Error() != `the provider has no host "c"; its hosts are a, b, bad` {
		t.Errorf("got %v", err)
	}
	if f.Node("a") != "a" || f.Node("b") != "node-2" {
		t.Errorf("the nodes are %s and %s", f.Node("a"), f.Node("b"))
	}
	bad, err := f.Host("bad")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.LookupByName(t.Context(), "web"); err == nil {
		t.Error("a host without a URI answers")
	}
}

func TestNotFound_ByCode(t *testing.T) {
	for _, code := range []libvirt.ErrorNumber{
		libvirt.ErrNoDomain, libvirt.ErrNoSecret, libvirt.ErrNoStorageVol,
	} {
		if err := typed(libvirt.Error{Code: uint32(code), Message: "x"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("code %d is not ErrNotFound", code)
		}
	}
	for _, err := range []error{
		libvirt.Error{Code: uint32(libvirt.ErrInternalError), Message: "Domain not found: no domain with matching name"},
		libvirt.Error{Code: uint32(libvirt.ErrNoConnect), Message: "not found"},
		libvirt.Error{Code: uint32(libvirt.ErrNoStoragePool), Message: "Storage pool not found"}, // its volumes may exist
		libvirt.ErrInterrupted,
	} {
		if errors.Is(typed(err), ErrNotFound) {
			t.Errorf("%v is taken for ErrNotFound", err)
		}
	}
}
