package volume

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
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

func TestProvision_MakesAndRemoves(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	port := p.port()
	want := `iscsi:
  host: {name: "10.0.0.7", port: ` + port + `}
  portal: "iqn.2026-01.io.virtclaim:provision"
  lun: 0
  secretRef: {name: "provisioned"}
`
	for _, status := range []int{http.StatusCreated, http.StatusOK, http.StatusOK} {
		is := p.mustAsk(t, status, http.MethodPut, "/volume?size=1048577", "one")
		if is.text != want || is.Get("Content-Type") != "application/yaml" {
			t.Errorf("%q %s", is.Get("Content-Type"), is.text)
		}
	}
	var parsed struct{ ISCSI struct{ Portal string } }
	if err := yaml.Unmarshal([]byte(want), &parsed); err != nil || parsed.ISCSI.Portal != "iqn.2026-01.io.virtclaim:provision" {
		t.Errorf("%+v, %v", parsed, err)
	}
	var is unix.Stat_t
	if err := unix.Stat(filepath.Join(volumeFolder(p.folder, "one"), diskImage), &is); err != nil || is.Size != 2<<20 || is.Blocks != 0 {
		t.Errorf("%v, %d bytes in %d blocks", err, is.Size, is.Blocks)
	}
	if is := p.mustAsk(t, http.StatusConflict, http.MethodPut, "/volume?size=1048576", "one"); !strings.Contains(is.text, "1048577") {
		t.Error(is.text)
	}
	if is := p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "two"); !strings.Contains(is.text, "lun: 1\n") {
		t.Error(is.text)
	}
	for range 2 {
		if is := p.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "one"); is.text != "" {
			t.Error(is.text)
		}
	}
	if is := p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "three"); !strings.Contains(is.text, "lun: 2\n") {
		t.Errorf("a number is used again: %s", is.text)
	}
	p.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "two")
	p.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "three")
	if left := p.left(t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// What initiators know of a volume stays over restarts, whatever a former server was doing when it was killed.
func TestProvision_Restarts(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	answers := map[string]string{}
	for _, key := range []string{"zero", "one", "../two"} {
		answers[key] = p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", key).text
	}
	p.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "zero")
	delete(answers, "zero")
	before := recordOf(t, p.folder, "one")
	disk := filepath.Join(volumeFolder(p.folder, "one"), diskImage)
	content := bytes.Repeat([]byte("content "), 1<<17)
	if err := os.WriteFile(disk, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.out.text())
	}

	of := &provisioner{folder: p.folder}
	for _, left := range []string{of.path(newPrefix, "half"), of.path(removedPrefix, "gone")} {
		if err := os.MkdirAll(filepath.Join(left, "more"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(p.folder, ".new-clothes")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	again := startProvision(t, p.folder)
	if left := again.left(t); len(left) != 3 || !slices.Contains(left, ".new-clothes") {
		t.Errorf("left are %q", left)
	}
	for key, was := range answers {
		want := strings.ReplaceAll(was, p.port(), again.port()) // the system may have given the former one to another process meanwhile
		if is := again.mustAsk(t, http.StatusOK, http.MethodPut, "/volume?size=1024Ki", key); is.text != want {
			t.Errorf("%s: %s", key, is.text)
		}
	}
	if got, err := os.ReadFile(disk); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	if now := recordOf(t, p.folder, "one"); now != before || len(now.Serial) < 20 || now.LUN != 1 {
		t.Errorf("%+v, and it was %+v", now, before)
	}
	if is := again.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "three"); !strings.Contains(is.text, "lun: 3\n") {
		t.Error(is.text)
	}
}

// Data of which the server does not know what it is stays as it is.
func TestProvision_RefusesUnknownVolumes(t *testing.T) {
	withSecret(t)
	for name, spoil := range map[string]func(volume string) error{
		"a broken record":  func(v string) error { return os.WriteFile(filepath.Join(v, volumeRecord), []byte(`{"key": `), 0o600) },
		"an empty record":  func(v string) error { return os.WriteFile(filepath.Join(v, volumeRecord), []byte(`{}`), 0o600) },
		"no record":        func(v string) error { return os.Remove(filepath.Join(v, volumeRecord)) },
		"no disk":          func(v string) error { return os.Remove(filepath.Join(v, diskImage)) },
		"half a block":     func(v string) error { return os.Truncate(filepath.Join(v, diskImage), 100) },
		"another's folder": func(v string) error { return os.Rename(v, volumeFolder(filepath.Dir(v), "other")) },
		"a copy": func(v string) error {
			return os.CopyFS(v+".bak", os.DirFS(v))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvision(t, inMemory(t))
			p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
			p.end()
			if err := spoil(volumeFolder(p.folder, "one")); err != nil {
				t.Fatal(err)
			}
			before := p.left(t)
			var out output
			if code := Run(t.Context(), []string{"provision", "-folder", p.folder}, "", &out); code != 1 || !strings.Contains(out.text(), before[len(before)-1]+" can't be served") {
				t.Errorf("exit code %d: %s", code, out.text())
			}
			if after := p.left(t); !slices.Equal(before, after) {
				t.Errorf("%q became %q", before, after)
			}
		})
	}
}

// A pod that is being replaced still has the folder for a while.
func TestProvision_OneServerPerFolder(t *testing.T) {
	withSecret(t)
	before := lockTime
	t.Cleanup(func() { lockTime = before })
	lockTime = 0
	p := startProvision(t, inMemory(t))
	var out output
	if code := Run(t.Context(), []string{"provision", "-folder", p.folder}, "", &out); code != 1 || !strings.Contains(out.text(), "in use by another pod") {
		t.Errorf("exit code %d: %s", code, out.text())
	}
	lockTime = before
	ended := make(chan int)
	go func() { ended <- p.end() }()
	startProvision(t, p.folder)
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestProvision_RefusesRequests(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t), "-max-size", "2Gi", "-max-volumes", "1")
	for _, c := range []struct {
		method, path, key string
		headers           []string
		status            int
		says              string
	}{
		{"PUT", "/volume", "k", nil, 400, "size is missing"},
		{"PUT", "/volume?size=", "k", nil, 400, "size"},
		{"PUT", "/volume?size=ten", "k", nil, 400, `"ten"`},
		{"PUT", "/volume?size=1Mi&size=1Mi", "k", nil, 400, "twice"},
		{"PUT", "/volume?size=1Mi&pool=fast", "k", nil, 400, `"pool"`},
		{"PUT", "/volume?size=%zz", "k", nil, 400, "can't be read"},
		{"PUT", "/volume?size=2049Mi", "k", nil, 413, "-max-size"},
		{"PUT", "/volume?size=1Mi", "", nil, 400, "Idempotency-Key"},
		{"PUT", "/volume?size=1Mi", strings.Repeat("k", 256), nil, 400, "Idempotency-Key"},
		{"PUT", "/volume?size=1Mi", "a key", nil, 400, "Idempotency-Key"},
		{"PUT", "/volume?size=1Mi", "a\tkey", nil, 400, "Idempotency-Key"},
		{"PUT", "/volume?size=1Mi", "ключ", nil, 400, "Idempotency-Key"},
		{"DELETE", "/volume", "", nil, 400, "Idempotency-Key"},
		{"PUT", "/volume?size=1Mi", "k", []string{"Virtclaim-Protocol", "v2"}, 400, `"v2"`},
		{"PUT", "/volume?size=1Mi", "k", []string{"Virtclaim-Token", ""}, 401, "token"},
		{"PUT", "/volume?size=1Mi", "k", []string{"Virtclaim-Token", "guess"}, 401, "token"},
		{"DELETE", "/volume", "k", []string{"Virtclaim-Token", "", "Authorization", "Basic secret"}, 401, "token"},
		{"DELETE", "/volume", "k", []string{"Virtclaim-Token", "", "Authorization", "Bearer guess"}, 401, "token"},
		{"GET", "/volume", "k", nil, 405, "PUT"},
		{"PUT", "/volumes", "k", nil, 404, "/volume"},
		{"PUT", "/volume?size=1Mi", strings.Repeat("k", 255), []string{"Virtclaim-Token", "", "Authorization", "Bearer secret", "Virtclaim-Protocol", "v1"}, 201, "lun: 0"},
		{"PUT", "/volume?size=1Mi", "k", nil, 507, "-max-volumes"},
		{"GET", "/healthz", "", []string{"Virtclaim-Token", ""}, 200, ""},
	} {
		is := p.ask(t, c.method, c.path, c.key, c.headers...)
		if is.status != c.status || !strings.Contains(is.text, c.says) || c.status >= 400 && (strings.Count(is.text, "\n") != 1 || !strings.HasPrefix(is.Get("Content-Type"), "text/plain")) {
			t.Errorf("%s %s of %.10q %q: %d %s", c.method, c.path, c.key, c.headers, is.status, is.text)
		}
	}
	if left := p.left(t); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
	if strings.Contains(p.out.text(), "secret") || strings.Contains(p.out.text(), "guess") {
		t.Errorf("a secret is printed: %s", p.out.text())
	}
}

// A client that asks for a volume that is being made is told to ask again, and finds it once it is made, although the first one has gone.
func TestProvision_IsBeingMade(t *testing.T) {
	withSecret(t)
	before := turnTime
	t.Cleanup(func() { turnTime = before })
	registry := newRegistry(t)
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-goOn
		registry.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	push(t, strings.TrimPrefix(registry.URL, "http://")+"/disks/golden:1", disk(3))
	p := startProvision(t, inMemory(t), "-image", strings.TrimPrefix(slow.URL, "http://")+"/disks/golden:1", "-arch", "amd64")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, p.url+"/volume", nil)
		if err == nil {
			req.Header.Set("Idempotency-Key", "one")
			req.Header.Set("Virtclaim-Token", "secret")
			_, err = p.client.Do(req) //nolint:bodyclose // it fails
		}
		left <- err
	}()
	<-asked
	turnTime = 0
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		if is := p.mustAsk(t, http.StatusServiceUnavailable, method, "/volume", "one"); is.Get("Retry-After") != "5" {
			t.Errorf("%s: %v", method, is.Header)
		}
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(goOn)
	for {
		is := p.ask(t, http.MethodPut, "/volume", "one")
		if is.status == http.StatusOK {
			break
		}
		if is.status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", is.status, is.text)
		}
	}
}

// A pod that ends does not wait for an image, and leaves nothing of it.
func TestProvision_EndsInTheMiddle(t *testing.T) {
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-goOn
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(goOn) })
	s := newProvisionServer(t)
	s.image.Reference = strings.TrimPrefix(silent.URL, "http://") + "/disks/golden:1"
	ctx, end := context.WithCancel(t.Context())
	go func() {
		<-asked
		end()
	}()
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/volume", nil)
	req.Header = http.Header{"Idempotency-Key": {"one"}, "Virtclaim-Token": {"secret"}}
	if s.handle(ctx, w, req); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if left, err := os.ReadDir(s.folder); err != nil || len(left) != 1 { // target.json
		t.Errorf("%v, %v", left, err)
	}
}

func TestProvision_FromImage(t *testing.T) {
	withSecret(t)
	reference := strings.TrimPrefix(newRegistry(t).URL, "http://") + "/disks/golden:1"
	content := disk(40)
	push(t, reference, qcow2Of(content, true, false))
	p := startProvision(t, inMemory(t), "-image", reference, "-arch", "amd64", "-path", "disk/disk.qcow2")
	p.mustAsk(t, http.StatusBadRequest, http.MethodPut, "/volume?size=1Mi", "small")
	if left := p.left(t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume", "same")
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=100Mi", "large")
	for key, size := range map[string]int{"same": len(content), "large": 100 << 20} {
		got, err := os.ReadFile(filepath.Join(volumeFolder(p.folder, key), diskImage))
		if err != nil || len(got) != size || !bytes.HasPrefix(got, content) || !isZero(got[len(content):]) {
			t.Errorf("%s: %v, %d bytes", key, err, len(got))
		}
		if is := recordOf(t, p.folder, key); !strings.HasPrefix(is.Digest, "sha256:") {
			t.Errorf("%+v", is)
		}
	}
	p.end()
	again := startProvision(t, p.folder)
	again.mustAsk(t, http.StatusOK, http.MethodPut, "/volume", "same")
	again.mustAsk(t, http.StatusBadRequest, http.MethodPut, "/volume", "blank")
}

// An image for which there is no room leaves nothing.
func TestProvision_NoRoom(t *testing.T) {
	withSecret(t)
	reference := strings.TrimPrefix(newRegistry(t).URL, "http://") + "/disks/golden:1"
	push(t, reference, disk(40))
	before := maxRoom
	t.Cleanup(func() { maxRoom = before })
	maxRoom = 1 << 20
	p := startProvision(t, inMemory(t), "-image", reference, "-arch", "amd64")
	p.mustAsk(t, http.StatusInsufficientStorage, http.MethodPut, "/volume", "one")
	if left := p.left(t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	for err, want := range map[error]int{
		fmt.Errorf("write: %w", unix.ENOSPC):  http.StatusInsufficientStorage,
		fmt.Errorf("write: %w", unix.EDQUOT):  http.StatusInsufficientStorage,
		fmt.Errorf("write: %w", unix.EIO):     http.StatusInternalServerError,
		errors.Join(context.Canceled, io.EOF): http.StatusServiceUnavailable,
	} {
		if got := statusOf(err); got != want {
			t.Errorf("%v: %d", err, got)
		}
	}
}

// newProvisionServer has an empty folder and no listeners.
func newProvisionServer(t *testing.T) *provisionServer {
	t.Helper()
	s := &provisionServer{provisioner: provisioner{folder: inMemory(t), maxSize: 1 << 40, maxVolumes: 1, log: func(string) {}}, token: "secret", turn: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A volume that can't be removed stays, and is served.
func TestProvision_FailedRemovalKeepsVolume(t *testing.T) {
	p := newProvisionServer(t)
	v, isNew, err := p.put(t.Context(), "one", 1<<20, true)
	if err != nil || !isNew {
		t.Fatal(err)
	}
	path := p.path(volumePrefix, "one")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := p.remove("one"); err == nil {
		t.Error("it was removed")
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if again, isNew, err := p.put(t.Context(), "one", 1<<20, true); again != v || isNew || err != nil {
		t.Errorf("%v, %v, %v", again, isNew, err)
	}
	if err := p.target.Add(v.LUN, iscsi.LUN{Disk: v.disk}); err == nil {
		t.Error("it is not served")
	}
	if err := p.remove("one"); err != nil {
		t.Error(err)
	}
}

func TestProvision_Mistakes(t *testing.T) {
	withSecret(t)
	empty := t.TempDir()
	for args, want := range map[string]string{
		"-portal 10.0.0.7:iscsi":           "host:port",
		"-portal :3260":                    "host:port",
		"-token-file=":                     "-token-file or -client-ca",
		"-tls-key x":                       "go together",
		"-chap=":                           "-no-chap",
		"-chap " + empty:                   "no such file",
		"-chap-secret=":                    "-chap-secret",
		"-max-size many":                   "max-size",
		"-max-volumes 0":                   "-max-volumes",
		"-image https://a/b":               "does not name a container image",
		"-folder " + empty + "/none/of":    "no such file",
		"-iscsi-listen 127.0.0.1:0:0":      "too many colons",
		"-iscsi-listen :0 -listen 1:2:3:4": "too many colons",
	} {
		var out output
		if code := Run(t.Context(), append([]string{"provision", "-folder", empty}, strings.Fields(args)...), "", &out); code != 1 || !strings.Contains(out.text(), want) {
			t.Errorf("%q: exit code %d: %s", args, code, out.text())
		}
	}
	t.Setenv("POD_IP", "")
	var out output
	if code := Run(t.Context(), []string{"provision", "-folder", empty}, "", &out); code != 1 || !strings.Contains(out.text(), "-portal") {
		t.Errorf("exit code %d: %s", code, out.text())
	}
	p := startProvision(t, empty, "-no-chap", "-portal", "[fd00::7]:13260", "-initiator", "iqn.2026-01.org.example:a")
	is := p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
	if !strings.Contains(is.text, `{name: "fd00::7", port: 13260}`) || strings.Contains(is.text, "secretRef") || !strings.Contains(is.text, `initiatorName: "iqn.2026-01.org.example:a"`) {
		t.Error(is.text)
	}
}

func TestBytesOf(t *testing.T) {
	for _, text := range []string{"1", "1048576", "512Mi", "10Gi", "1.5Gi", "100M", "1k", "1Ki", "2G", "3T", "64Ti", "1.1M", "1100k"} {
		want := resource.MustParse(text)
		if got, err := bytesOf(text); err != nil || got != want.Value() {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "+1", "Gi", "1.Gi.", "1 Gi", "10gi", "1e3", "inf", "NaN", "0x10", "65Ti", "500m", strings.Repeat("9", 400)} {
		if got, err := bytesOf(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// Whatever is asked, a volume is one of the key, has a size, and goes with it.
func FuzzProvision(f *testing.F) {
	f.Add("PUT", "size=1Mi", "key", "v1")
	f.Add("PUT", "size=2Ti&size=1", "two keys", "")
	f.Add("DELETE", "%zz", "key", "v2")
	f.Fuzz(func(t *testing.T, method, query, key, protocol string) {
		s := newProvisionServer(t)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/volume", nil)
		req.Method, req.URL.RawQuery = method, query
		req.Header = http.Header{"Idempotency-Key": {key}, "Virtclaim-Protocol": {protocol}, "Virtclaim-Token": {"secret"}}
		w := httptest.NewRecorder()
		s.handle(t.Context(), w, req)
		if made := w.Code == http.StatusCreated; made != (len(s.volumes) == 1) || made && (method != http.MethodPut || s.volumes[key].disk.Size() < 1<<20) || w.Code >= 500 {
			t.Errorf("%d %s, %d volumes", w.Code, w.Body, len(s.volumes))
		}
		if s.volumes[key] != nil {
			if err := s.remove(key); err != nil {
				t.Error(err)
			}
		}
		if left, err := os.ReadDir(s.folder); err != nil || len(left) != 1 { // target.json
			t.Errorf("%v, %v", left, err)
		}
	})
}

// A client that looks for its volume does not get an empty one. A disk that has become shorter is not served.
func TestProvision_LostVolume(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	if is := p.mustAsk(t, http.StatusPreconditionFailed, http.MethodPut, "/volume?size=1Mi", "one", "If-Match", "*"); !strings.Contains(is.text, "there is no volume") {
		t.Error(is.text)
	}
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
	p.mustAsk(t, http.StatusOK, http.MethodPut, "/volume?size=1Mi", "one", "If-Match", "*")
	if code := p.end(); code != 0 {
		t.Error(code)
	}
	if err := os.Truncate(filepath.Join(volumeFolder(p.folder, "one"), diskImage), 512); err != nil {
		t.Fatal(err)
	}
	again := provisioner{folder: p.folder}
	if err := again.load(); err == nil || !strings.Contains(err.Error(), "has 512 bytes") {
		t.Errorf("%v", err)
	}
}

// Guards know an iSCSI disk by target and number: two targets never have one name, and a volume never has the number of one before.
func TestProvision_NamesAreUsedOnce(t *testing.T) {
	withSecret(t)
	folder := inMemory(t)
	names := map[string]bool{}
	for _, folder := range []string{folder, folder, inMemory(t)} {
		p := startProvision(t, folder, "-name=")
		is := p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
		name := regexp.MustCompile(`portal: "(iqn\.2026-01\.io\.virtclaim:[a-z0-9]{26})"\n  lun: (\d+)`).FindStringSubmatch(is.text)
		if name == nil {
			t.Fatal(is.text)
		}
		names[name[1]+"/"+name[2]] = true
		p.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "one")
		if code := p.end(); code != 0 {
			t.Error(code)
		}
	}
	if len(names) != 3 {
		t.Errorf("got %v", names)
	}
}

func TestProvisioner_LUNsBeginAgainAtTheEnd(t *testing.T) {
	s := newProvisionServer(t)
	s.maxVolumes, s.record.NextLUN = 10, iscsi.MaxLUN
	if v, _, err := s.put(t.Context(), "last", 1<<20, true); err != nil || v.LUN != iscsi.MaxLUN {
		t.Errorf("%v %v", v, err)
	}
	if v, _, err := s.put(t.Context(), "first", 1<<20, true); err != nil || v.LUN != 0 {
		t.Errorf("%v %v", v, err)
	}
	if err := os.Remove(filepath.Join(s.folder, targetFile)); err != nil {
		t.Fatal(err)
	}
	again := provisioner{folder: s.folder}
	if err := again.load(); err == nil || !strings.Contains(err.Error(), "no target.json") {
		t.Errorf("without its record: %v", err)
	}
}
