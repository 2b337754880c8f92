package host

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, uri string) *url.URL {
	t.Helper()
	if err := ValidateURI(uri); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSSH_ArgumentsFromURI(t *testing.T) {
	for uri, want := range map[string][]string{
		"qemu+ssh://node-a/system":                             {"--", "node-a"},
		"qemu+ssh://root@node-a:2222/system":                   {"-l", "root", "-p", "2222", "--", "node-a"},
		"qemu+ssh://[2001:db8::1]/system":                      {"--", "2001:db8::1"},
		"qemu+ssh://h/system?keyfile=/k":                       {"-i", "/k", "--", "h"},
		"qemu+ssh://h/system?known_hosts=/k%20%25":             {"-o", `UserKnownHostsFile="/k %%"`, "--", "h"},
		"qemu+ssh://h/system?no_verify=1":                      {"-o", "StrictHostKeyChecking=no", "--", "h"},
		"qemu+ssh://h/system?no_verify=0":                      {"--", "h"},
		"qemu+ssh://h/system?known_hosts_verify=auto&no_tty=1": {"-o", "StrictHostKeyChecking=accept-new", "--", "h"},
	} {
		got := sshArguments(parse(t, uri))
		always := []string{"-T", "-e", "none", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "ConnectTimeout=10"}
		if !slices.Equal(got[:len(got)-1], slices.Concat(always, want)) {
			t.Errorf("%s: got %q", uri, got)
		}
	}
}

// On the host the login shell, whichever it is, parses the command first; then sh does.
func TestSSH_RemoteCommandTriesPrograms(t *testing.T) {
	const system = "'/var/run/libvirt/virtqemud-sock' '/var/run/libvirt/libvirt-sock'"
	netcat := func(name, sockets string) string {
		return "n=" + name + "; for s in " + sockets + `; do [ -S "$s" ] && break; done; ` +
			`if "$n" -q 2>&1 | grep -q "requires an argument"; then exec "$n" -q0 -U "$s"; fi; exec "$n" -U "$s"`
	}
	for uri, want := range map[string]string{
		"qemu+ssh://h/system": "if command -v virt-ssh-helper >/dev/null 2>&1; then exec virt-ssh-helper 'qemu:///system'; fi; " +
			"if command -v nc >/dev/null 2>&1; then " + netcat("'nc'", system) + `; fi; echo "there is neither virt-ssh-helper nor nc on the host" >&2; exit 127`,
		"qemu+ssh://h/session?proxy=native": "exec virt-ssh-helper 'qemu:///session'",
		"qemu+ssh://h/system?netcat=/n%27c": netcat(`'/n'\''c'`, system),
		"qemu+ssh://h/system?socket=/s%20s": netcat("'nc'", "'/s s'"),
		"qemu+ssh://h/session?proxy=netcat": netcat("'nc'",
			`"${XDG_RUNTIME_DIR:-$HOME/.cache}"'/libvirt/virtqemud-sock' "${XDG_RUNTIME_DIR:-$HOME/.cache}"'/libvirt/libvirt-sock'`),
	} {
		args := sshArguments(parse(t, uri))
		if got := args[len(args)-1]; got != "sh -c "+ShellQuote(want) {
			t.Errorf("%s: got %s", uri, got)
		}
	}
}

// asSSH returns a URI whose ssh command is a script.
func asSSH(t *testing.T, script string) *url.URL {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return parse(t, "qemu+ssh://root@node-a/system?command="+url.QueryEscape(path))
}

func TestSSH_StderrIsTheError(t *testing.T) {
	h := &Host{Key: "a", uri: asSSH(t, `echo "a banner" >&2; echo "root@node-a: Permission denied (publickey)." >&2; exit 255`)}
	_, err := h.LookupByName(t.Context(), "web")
	if !unreachable(err) || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), "run ssh node-a: a banner; root@node-a: Permission denied (publickey). Check that libvirtd runs there") {
		t.Errorf("got %v", err)
	}
	h = &Host{Key: "a", uri: parse(t, "qemu+ssh://node-a/system?command=/nowhere/ssh")}
	if _, err := h.LookupByName(t.Context(), "web"); !unreachable(err) || !strings.Contains(err.Error(), "/nowhere/ssh") {
		t.Errorf("got %v", err)
	}
}

func TestSSH_LongStderrIsCut(t *testing.T) {
	var said tail
	for range 1000 {
		_, _ = said.Write([]byte("debug1: something\r\n"))
	}
	_, _ = said.Write([]byte("\nNo key is known.\nHost key verification failed.\n"))
	if got := said.String(); got != "debug1: something; debug1: something; No key is known; Host key verification failed" {
		t.Errorf("got %q", got)
	}
}
