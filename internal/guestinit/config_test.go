package guestinit

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfig_EncodeDecode(t *testing.T) {
	c := Config{
		Root: "root", Arguments: []string{"nginx", "-g", "daemon off;"}, Environment: map[string]string{"A": "b=c"}, User: "101:101",
		WorkingDirectory: "/srv", StopSignal: "SIGQUIT", StopTimeout: 3, Hostname: "web", Restart: RestartOnFailure,
		Mounts:     []Mount{{Disk: "data", Path: "/data", ReadOnly: true}, {Disk: "blank", Path: "/blank", Format: FormatExt4}},
		Interfaces: []Interface{{MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.0.5/24", "fd00::5/64"}, Gateway: "10.0.0.1", Nameservers: []string{"::1"}, Search: []string{"example.org"}}},
	}
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	c.Version = Version
	if difference := cmp.Diff(c, got); difference != "" {
		t.Error(difference)
	}
}

func decodeJSON(text string) (Config, error) {
	return Decode(base64.StdEncoding.AppendEncode(nil, []byte(text)))
}

func TestConfig_EncodeRefusesMoreThanQEMUTakes(t *testing.T) {
	c := Config{Root: "root", Arguments: []string{"a"}, Environment: map[string]string{"A": strings.Repeat("a", maxConfig)}}
	if _, err := c.Encode(); err == nil || !strings.Contains(err.Error(), "may have 65536") {
		t.Error(err)
	}
}

// Another version says so, even if it has what this one does not know.
func TestDecode_OtherVersion(t *testing.T) {
	for _, text := range []string{`{"version": 2, "root": ["a", "b"], "new": true}`, `{}`} {
		if _, err := decodeJSON(text); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "Replace the virtclaim_kernel") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What a newer provider has added without another version, an older init does not leave out.
func TestDecode_NewField(t *testing.T) {
	_, err := decodeJSON(`{"version": 1, "root": "r", "arguments": ["a"], "mounts": [{"disk": "d", "path": "/d", "new": true}]}`)
	if err == nil || !strings.Contains(err.Error(), "replace the virtclaim_kernel") {
		t.Error(err)
	}
}

func TestDecode_Refuses(t *testing.T) {
	if c, err := Decode([]byte("no base64")); err == nil {
		t.Errorf("it is %+v", c)
	}
	for _, text := range []string{
		``, `[]`, `{"version": 1, "root": "r", "arguments": ["a"], "unknown": 1}`, `{"version": 1, "root": "r", "arguments": ["a"]} {}`, `{"version": 1}`,
	} {
		if c, err := decodeJSON(text); err == nil {
			t.Errorf("%s is %+v", text, c)
		}
	}
}

func TestConfig_Check(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":                             func(*Config) {},
		"root":                         func(c *Config) { c.Root = "" },
		"arguments":                    func(c *Config) { c.Arguments = []string{""} },
		"NUL":                          func(c *Config) { c.Arguments = []string{"a\x00"} },
		"environment":                  func(c *Config) { c.Environment = map[string]string{"A=B": ""} },
		"working_directory":            func(c *Config) { c.WorkingDirectory = "srv" },
		"stop_signal":                  func(c *Config) { c.StopSignal = "SIGNOTHING" },
		"stop_timeout":                 func(c *Config) { c.StopTimeout = -1 },
		"restart":                      func(c *Config) { c.Restart = "sometimes" },
		"hostname":                     func(c *Config) { c.Hostname = "a b" },
		"begin with /":                 func(c *Config) { c.Mounts = []Mount{{Disk: "a", Path: "data"}} },
		"superfluous":                  func(c *Config) { c.Mounts = []Mount{{Disk: "a", Path: "/a/../b"}} },
		"path \"/a\"":                  func(c *Config) { c.Mounts = []Mount{{Disk: "a", Path: "/a"}, {Disk: "b", Path: "/a"}} },
		"the kernel's":                 func(c *Config) { c.Mounts = []Mount{{Disk: "a", Path: "/proc/data"}} },
		"format: \"xfs\" must be ext4": func(c *Config) { c.Mounts = []Mount{{Disk: "a", Path: "/a", Format: "xfs"}} },
		"remove format or read_only": func(c *Config) {
			c.Mounts = []Mount{{Disk: "a", Path: "/a", Format: FormatExt4, ReadOnly: true}}
		},
		"search": func(c *Config) { c.Interfaces = []Interface{{MAC: "52:54:00:00:00:01", Search: []string{"a b"}}} },
		"another version": func(c *Config) {
			c.Interfaces = []Interface{{MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.0.1/24"}, Gateway: "fe80::1"}}
		},
		"mac": func(c *Config) { c.Interfaces = []Interface{{MAC: "52:54"}} },
		"addresses": func(c *Config) {
			c.Interfaces = []Interface{{MAC: "52:54:00:00:00:01", Addresses: []string{"10.0.0.1"}}}
		},
		"gateway":        func(c *Config) { c.Interfaces = []Interface{{MAC: "52:54:00:00:00:01", Gateway: "10.0.0.1"}} },
		"nameservers":    func(c *Config) { c.Interfaces = []Interface{{MAC: "52:54:00:00:00:01", Nameservers: []string{"dns"}}} },
		"is there twice": func(c *Config) { c.Interfaces = []Interface{{MAC: "52:54:00:00:00:0a"}, {MAC: "52:54:00:00:00:0A"}} },
	} {
		c := Config{Version: Version, Root: "root", Arguments: []string{"a"}}
		change(&c)
		err := c.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]int{
		"": 15, "SIGTERM": 15, "TERM": 15, "sigquit": 3, "3": 3, "SIGRTMIN+3": 37, "RTMAX-1": 63, "SIGRTMIN": 34, "64": 64,
		"0": 0, "65": 0, "-1": 0, "SIG": 0, "RTMIN3": 0, "RTMAX+1": 0, "RTMIN-1": 0, "NOTHING": 0,
	} {
		if got, err := ParseSignal(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d: %v", text, got, err)
		}
	}
}

func TestEnvironment_EncodeDecode(t *testing.T) {
	want := map[string]string{"PASSWORD": "a=\"b\"\n", "EMPTY": ""}
	content, err := EncodeEnvironment(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeEnvironment(append(content, make([]byte, 512)...)) // a disk has whole sectors
	if difference := cmp.Diff(want, got); err != nil || difference != "" {
		t.Errorf("%v: %s", err, difference)
	}
	for _, bad := range []map[string]string{{"A=B": "secret"}, {"": "secret"}, {"A": "secret\x00"}, {"A": "secret\xff"}, {"A": "secret" + strings.Repeat("x", MaxEnvironment)}} {
		if _, err := EncodeEnvironment(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
	for _, bad := range []string{"", "PASSWORD=secret", environmentHead + "secret", environmentHead + `{"A": 1}`} {
		if got, err := DecodeEnvironment([]byte(bad)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %v, %v", bad, got, err)
		}
	}
}
