package host

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
		got := sshArguments(parse(t, uri), dialTimeout)
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
		args := sshArguments(parse(t, uri), dialTimeout)
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
	h := &Host{Key: "a", timeout: dialTimeout, uri: asSSH(t, `echo "a banner" >&2; echo "root@node-a: Permission denied (publickey)." >&2; exit 255`)}
	_, err := h.LookupByName(t.Context(), "web")
	if !unreachable(err) || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), "(publickey). Check that this works, and asks nothing: ssh -o BatchMode=yes root@node-a true") {
		t.Errorf("got %v", err)
	}
	h = &Host{Key: "a", timeout: dialTimeout, uri: parse(t, "qemu+ssh://node-a/system?command=/nowhere/ssh")}
	if _, err := h.LookupByName(t.Context(), "web"); !unreachable(err) || !strings.Contains(err.Error(), "/nowhere/ssh") {
		t.Errorf("got %v", err)
	}
}

// A start-up file of the host's shell prints to standard output, which libvirt's protocol follows.
func TestSSH_ShellOutputIsShown(t *testing.T) {
	uri := asSSH(t, `echo "Welcome to node-a"; sleep 0.1; echo "0 updates"; printf '\000\000\000\034'; echo "a warning" >&2; cat >/dev/null`)
	start := time.Now()
	h := &Host{Key: "a", timeout: dialTimeout, uri: uri}
	_, err := h.LookupByName(t.Context(), "web")
	if want := `the shell of the host printed "Welcome to node-a\n0 updates\n" before libvirt's answer`; err == nil ||
		!unreachable(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a warning") {
		t.Errorf("got %v", err)
	}
	if _, err := h.openStream(t.Context()); err == nil || !strings.Contains(err.Error(), "Welcome to node-a") {
		t.Errorf("a stream: got %v", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestSSH_RefusedConnectionIsTriedAgain(t *testing.T) {
	startupPause = time.Millisecond
	t.Cleanup(func() { startupPause = firstStartupPause })
	tries := filepath.Join(t.TempDir(), "tries")
	count := func() int {
		text, _ := os.ReadFile(tries)
		return strings.Count(string(text), "x")
	}
	const refuse = `echo "kex_exchange_identification: read: Connection reset by peer" >&2; echo "Connection reset by 192.0.2.1 port 22" >&2; exit 255`
	// What the third attempt prints shows that it got through.
	h := &Host{Key: "a", timeout: dialTimeout, uri: asSSH(t, "printf x >>"+tries+"; [ $(wc -c <"+tries+") -lt 3 ] || { echo through; exit; }; "+refuse)}
	if _, err := h.LookupByName(t.Context(), "web"); err == nil || !strings.Contains(err.Error(), `printed "through\n"`) || count() != 3 {
		t.Errorf("got %v after %d tries", err, count())
	}
	for name, open := range map[string]func(*Host) error{
		"calls":    func(h *Host) error { _, err := h.LookupByName(t.Context(), "web"); return err },
		"a stream": func(h *Host) error { _, err := h.openStream(t.Context()); return err },
	} {
		_ = os.Remove(tries)
		err := open(&Host{Key: "a", timeout: dialTimeout, uri: asSSH(t, "printf x >>"+tries+"; "+refuse)})
		if !unreachable(err) || !strings.Contains(err.Error(), "raise MaxStartups in its sshd_config") || count() != startupTries {
			t.Errorf("%s: got %v after %d tries", name, err, count())
		}
	}
	_ = os.Remove(tries)
	h = &Host{Key: "a", timeout: dialTimeout, uri: asSSH(t, "printf x >>"+tries+`; echo "root@node-a: Permission denied (publickey)." >&2; exit 255`)}
	if _, err := h.LookupByName(t.Context(), "web"); err == nil || strings.Contains(err.Error(), "MaxStartups") || count() != 1 {
		t.Errorf("got %v after %d tries", err, count())
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
