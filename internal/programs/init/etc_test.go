//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostsFile(t *testing.T) {
	for name, want := range map[string]string{"": "", "localhost": "", "web": "127.0.1.1\tweb\n", "web.example.org": "127.0.1.1\tweb.example.org web\n"} {
		got := hostsFile(name)
		if rest, found := strings.CutPrefix(got, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"); !found || rest != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// What an image links to outside of its root stays as it is.
func TestWriteEtc(t *testing.T) {
	outside := writeFile(t, filepath.Join(t.TempDir(), "outside"), []byte("theirs"), 0o644)
	for name, prepare := range map[string]func(root string) error{
		"scratch": func(string) error { return nil },
		"dangling": func(root string) error {
			return os.Symlink("../run/resolv.conf", filepath.Join(root, "etc", "resolv.conf"))
		},
		"outside": func(root string) error { return os.Symlink(outside, filepath.Join(root, "etc", "resolv.conf")) },
		"file": func(root string) error {
			return os.WriteFile(filepath.Join(root, "etc", "resolv.conf"), []byte("a longer one"), 0o600)
		},
		"folder": func(root string) error {
			if err := os.Remove(filepath.Join(root, "etc")); err != nil {
				return err
			}
			return os.Symlink("/usr/etc", filepath.Join(root, "etc"))
		},
	} {
		root := t.TempDir()
		if name != "scratch" {
			for _, folder := range []string{"etc", "usr/etc"} {
				if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := prepare(root); err != nil {
			t.Fatal(err)
		}
		if err := writeEtc(root, "resolv.conf", "ours"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		place := "etc"
		if name == "folder" {
			place = "usr/etc"
		}
		if got, err := os.ReadFile(filepath.Join(root, place, "resolv.conf")); err != nil || string(got) != "ours" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "theirs" {
		t.Errorf("%q, %v", got, err)
	}
}

// An interface that gets its lease later keeps what the others have.
func TestResolver_AllInterfaces(t *testing.T) {
	r := &resolver{root: t.TempDir()}
	for _, step := range []struct {
		name            string
		servers, search []string
	}{
		{"eth1", []string{"10.0.0.2"}, []string{"example.org"}},
		{"eth0", []string{"10.0.0.1", "10.0.0.2"}, nil},
		{"eth2", nil, nil},
		{"eth3", nil, []string{"b.example.org"}},
		{"eth1", []string{"10.0.0.3"}, []string{"example.org", "bad\nnameserver 6.6.6.6"}},
	} {
		if err := r.set(step.name, step.servers, step.search); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(r.root, "etc", "resolv.conf"))
	if want := resolvHead + "search example.org b.example.org\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

// Without servers, the image's own file stays, and what is none is replaced, as an earlier start's is.
func TestResolver_NoServers(t *testing.T) {
	none := resolvFile(nil, nil)
	link := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(target, path) }
	}
	file := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for name, c := range map[string]struct {
		prepare func(path string) error
		want    string
	}{
		"no file":            {func(string) error { return nil }, none},
		"dangling link":      {link("../run/systemd/resolve/stub-resolv.conf"), none},
		"an earlier start's": {file(resolvFile([]string{"10.0.0.1"}, nil)), none},
		"a folder":           {func(path string) error { return os.Mkdir(path, 0o755) }, none},
		"the image's":        {file("nameserver 10.0.0.9\n"), "nameserver 10.0.0.9\n"},
		"the image's link":   {link("/usr/other"), "options rotate\n"},
	} {
		root := t.TempDir()
		for _, folder := range []string{"etc", "usr"} {
			if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(root, "usr", "other"), []byte("options rotate\n"), 0o644)
		path := filepath.Join(root, "etc", "resolv.conf")
		if err := c.prepare(path); err != nil {
			t.Fatal(err)
		}
		r := &resolver{root: root}
		if err := errors.Join(r.set("eth0", nil, []string{"example.org"}), r.finish()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := readBelow(root, "etc/resolv.conf"); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		servers := resolvFile([]string{"10.0.0.1"}, []string{"example.org"})
		if err := errors.Join(r.set("eth1", []string{"10.0.0.1"}, nil), r.finish()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != servers {
			t.Errorf("%s: with servers: %q, %v", name, got, err)
		}
	}
}
