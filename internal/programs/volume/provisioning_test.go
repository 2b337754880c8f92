package volume

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// provisioning runs provision for a folder until it is ended.
type provisioning struct {
	folder, url, iscsi string
	out                output
	end                func() (code int)
	client             *http.Client
}

// withSecret mounts a Secret as the provider does.
func withSecret(t *testing.T) {
	t.Helper()
	before := mounted
	t.Cleanup(func() { mounted = before })
	mounted = t.TempDir()
	for name, content := range map[string]string{"token": "secret\n", "node.session.auth.username": "hosts", "node.session.auth.password": "secret-of-hosts"} {
		if err := os.WriteFile(filepath.Join(mounted, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("POD_IP", "10.0.0.7")
	t.Setenv("VIRTCLAIM_SECRET", "provisioned")
	t.Setenv("TERMINATION_LOG", filepath.Join(mounted, "log"))
}

var ready = regexp.MustCompile(`serves \d+ volumes of \S+ at (\S+), and waits at (\S+) for requests`)

// startProvision runs the command with a mounted Secret.
func startProvision(t *testing.T, folder string, args ...string) *provisioning {
	t.Helper()
	p := &provisioning{folder: folder, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	ended := false
	p.end = func() int {
		cancel()
		p.client.CloseIdleConnections()
		ended = true
		return <-code
	}
	t.Cleanup(func() {
		if !ended && p.end() != 0 {
			t.Errorf("it failed: %s", p.out.text())
		}
	})
	go func() {
		code <- Run(ctx, append([]string{"provision", "-folder", folder, "-listen", "127.0.0.1:0", "-iscsi-listen", "127.0.0.1:0", "-name", "iqn.2026-01.io.virtclaim:provision"}, args...), "", &p.out)
	}()
	for {
		if at := ready.FindStringSubmatch(p.out.text()); at != nil {
			p.iscsi, p.url = at[1], "https://"+at[2]
			return p
		}
		select {
		case c := <-code:
			code <- c
			t.Fatalf("exit code %d: %s", c, p.out.text())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// port is that of its iSCSI server.
func (p *provisioning) port() string { return p.iscsi[strings.LastIndex(p.iscsi, ":")+1:] }

type answered struct {
	status int
	text   string
	http.Header
}

// ask sends a request with a key and the token, and other headers.
func (p *provisioning) ask(t *testing.T, method, path, key string, headers ...string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("Virtclaim-Token", "secret")
	for n := 0; n < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp.StatusCode, string(text), resp.Header}
}

func (p *provisioning) mustAsk(t *testing.T, status int, method, path, key string, headers ...string) answered {
	t.Helper()
	is := p.ask(t, method, path, key, headers...)
	if is.status != status {
		t.Fatalf("%s %s of %q: %d %s", method, path, key, is.status, is.text)
	}
	return is
}

// left are the names in the folder, but for the lock.
func (p *provisioning) left(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".lock" && e.Name() != targetFile {
			names = append(names, e.Name())
		}
	}
	return names
}

// volumeFolder is that of a key.
func volumeFolder(folder, key string) string {
	return (&provisioner{folder: folder}).path(volumePrefix, key)
}

func recordOf(t *testing.T, folder, key string) (v provisioned) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(volumeFolder(folder, key), volumeRecord))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
