//go:build acc

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// remoteHost returns the lab's host that is on a network.
func remoteHost(t *testing.T) *lab.Remote {
	t.Helper()
	return acctest.Must(acctest.Lab(t).Remote(t.Context()))(t)
}

// reached returns a host by its URI, connected until hangUp or the test's end.
func reached(t *testing.T, uri string) (h *host.Host, hangUp func()) {
	t.Helper()
	if err := host.ValidateURI(uri); err != nil {
		t.Fatal(err)
	}
	f := host.NewRegistry(map[string]host.Config{"host-d": {URI: uri}})
	t.Cleanup(f.Close)
	return acctest.Must(f.Host("host-d"))(t), f.Close
}

func TestAccHost_CallsEventsAndData(t *testing.T) {
	r := remoteHost(t)
	command := withSSH(t, r)
	for name, uri := range map[string]string{
		"unix": r.URI,
		"tcp":  "qemu+tcp://" + r.Address + "/system",
		"tls":  "qemu+tls://" + r.Address + "/system?pkipath=" + url.QueryEscape(r.PKI),
		// The ssh in the PATH uses a jump host, and a key of an agent.
		"ssh":             "qemu+ssh://host-d/system",
		"ssh with netcat": "qemu+ssh://root@host-d:22/system?proxy=netcat&command=" + url.QueryEscape(command),
		"ssh at a socket": "qemu+ssh://host-d/system?socket=" + url.QueryEscape(filepath.Join(r.Dir, "sock", "libvirt-sock")),
	} {
		t.Run(name, func(t *testing.T) {
			h, hangUp := reached(t, uri)
			id, err := h.Define(t.Context(), lock(missing()))
			if err != nil {
				t.Fatal(err)
			}
			acctest.Undo(t, func(ctx context.Context) error { _, err := r.Virsh(ctx, "undefine", id); return err })
			awaitEvent(t, r.Host, h, id)
			image := noise(1<<20 + 17)
			createVolume(t, h, "uploaded")
			err = into(t.Context(), h, "uploaded", bytes.NewReader(image))
			if got := contentOf(t, h, "uploaded"); err != nil || !bytes.Equal(got, image) {
				t.Errorf("%v, and %d of %d bytes are there", err, len(got), len(image))
			}
			if err := h.DeleteVolume(t.Context(), "ssd", "uploaded"); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(name, "ssh") {
				awaitSSH(t, 2) // for calls and for events; that of the upload has ended
				hangUp()
				awaitSSH(t, 0)
			}
		})
	}
}

// awaitEvent waits, as machines do, for a domain that is ended outside of virtclaim.
func awaitEvent(t *testing.T, r *lab.Host, h *host.Host, id string) {
	t.Helper()
	if out := virsh(t, r, "start", "--paused", id); out == "" {
		t.Error("nothing was started")
	}
	asked, ended := make(chan bool, 100), make(chan error, 1)
	go func() {
		ended <- h.Await(t.Context(), id, func(ctx context.Context) (bool, error) {
			state, err := h.State(ctx, id)
			asked <- true
			return err == nil && !state.Active, err
		})
	}()
	<-asked
	virsh(t, r, "destroy", id)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAccHost_RefusesUntrustedClients(t *testing.T) {
	r := remoteHost(t)
	command := withSSH(t, r)
	swapped := filepath.Join(t.TempDir(), "known hosts")
	known := string(acctest.Must(os.ReadFile(r.SSH.KnownHosts))(t))
	// The jump host's key as that of the host.
	known, _, _ = strings.Cut(strings.Replace(known, r.Address, "host-d", 1), "\n")
	if err := os.WriteFile(swapped, []byte(known+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"qemu+ssh://host-d/system?known_hosts=" + url.QueryEscape(swapped):                       "Host key verification failed",
		"qemu+ssh://nobody@host-d/system":                                                        "Permission denied (publickey)",
		"qemu+ssh://host-d:2/system?command=" + url.QueryEscape(command):                         "open failed: ",
		"qemu+ssh://host-d/system?socket=/nowhere":                                               "/nowhere",
		"qemu+ssh://host-d/system?netcat=no-netcat":                                              "no-netcat",
		"qemu+tls://" + r.Address + "/system?pkipath=" + url.QueryEscape(r.Stranger):             "signed by unknown authority",
		"qemu+tls://" + r.Address + "/system?no_verify=1&pkipath=" + url.QueryEscape(r.Stranger): "does not admit this client's certificate",
		"qemu+tls://" + r.Address + ":1/system?pkipath=" + url.QueryEscape(r.PKI):                "connection refused",
	} {
		h, hangUp := reached(t, uri)
		_, err := h.LookupByName(t.Context(), "nobody")
		if !isUnreachable(err) || errors.Is(err, host.ErrNotFound) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", uri, err)
		}
		hangUp()
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	h, _ := reached(t, "qemu+ssh://host-d/system")
	if _, err := h.LookupByName(t.Context(), "nobody"); !isUnreachable(err) || !strings.Contains(fmt.Sprint(err), "Permission denied (publickey)") {
		t.Errorf("without the agent: %v", err)
	}
	awaitSSH(t, 0)
}

func TestAccHost_RedialsRestartedLibvirtd(t *testing.T) {
	r := remoteHost(t)
	withSSH(t, r)
	h, _ := reached(t, "qemu+ssh://host-d/system")
	answers := func() {
		t.Helper()
		acctest.Eventually(t, "libvirtd answers", func() error {
			if _, err := h.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
				return err // a failed dial is remembered for as long as it took
			}
			return nil
		})
	}
	for range 2 {
		answers()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.LookupByName(t.Context(), "nobody"); !isUnreachable(err) {
			t.Errorf("of a libvirtd that is down: %v", err)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answers()
}

// withSSH puts an ssh with the lab's configuration first in the PATH, with an agent that has the lab's key, and returns its path: the
// real one ignores HOME, and searches its configuration in the home folder from the user database.
func withSSH(t *testing.T, r *lab.Remote) (command string) {
	t.Helper()
	dir := acctest.Must(os.MkdirTemp("", "ssh"))(t) // the path of t.TempDir is too long for a socket
	program := acctest.Must(exec.LookPath("ssh"))(t)
	command = filepath.Join(dir, "ssh")
	script(t, command, fmt.Sprintf("exec '%s' -F '%s' \"$@\"", program, r.SSH.Config))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	socket := filepath.Join(dir, "agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket) //nolint:noctx // it is ended below
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		_ = os.RemoveAll(dir)
	})
	t.Setenv("SSH_AUTH_SOCK", socket)
	ask := filepath.Join(dir, "ask")
	script(t, ask, fmt.Sprintf("echo '%s'", r.SSH.Passphrase))
	t.Setenv("SSH_ASKPASS", ask)
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	acctest.Eventually(t, "the agent has the key", func() error {
		if out, err := exec.CommandContext(t.Context(), "ssh-add", r.SSH.Key).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return command
}

func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// awaitSSH waits until this process has that many ssh programs.
func awaitSSH(t *testing.T, want int) {
	t.Helper()
	acctest.Eventually(t, fmt.Sprintf("there are %d ssh programs", want), func() error {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		var found []string
		for _, file := range all {
			text, _ := os.ReadFile(file) // it may have ended in between
			if fields := strings.Fields(string(text)); len(fields) > 3 && fields[1] == "(ssh)" && fields[3] == strconv.Itoa(os.Getpid()) {
				found = append(found, fields[0])
			}
		}
		if len(found) != want {
			return fmt.Errorf("there are %v", found)
		}
		return nil
	})
}
