package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
)

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
		"a link to the folder": func(v string) error {
			away := filepath.Join(filepath.Dir(v), "away")
			return errors.Join(os.Rename(v, away), os.Symlink(away, v))
		},
		"a link to the record": func(v string) error { return linked(filepath.Join(v, volumeRecord)) },
		"a link to the disk":   func(v string) error { return linked(filepath.Join(v, diskImage)) },
		"a FIFO": func(v string) error {
			record := filepath.Join(v, volumeRecord)
			return errors.Join(os.Remove(record), unix.Mkfifo(record, 0o600))
		},
		"a file": func(v string) error { return errors.Join(os.RemoveAll(v), os.WriteFile(v, nil, 0o600)) },
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

// linked has a link in the place of a file.
func linked(path string) error {
	return errors.Join(os.Rename(path, path+".away"), os.Symlink(path+".away", path))
}

// What is not the server's own is named once, and stays; a leftover that is a link is removed, and not what it leads to.
func TestProvision_LeavesOthersAlone(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
	p.end()
	others := []string{"volume-old", volumeFolder("", "one") + ".bak", "a \"file\"", ".new-clothes", "target.json.bak"}
	for _, name := range others {
		if err := os.Mkdir(filepath.Join(p.folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(t.TempDir(), "kept")
	of := &provisioner{folder: p.folder}
	err := os.WriteFile(kept, nil, 0o600)
	for path, to := range map[string]string{of.path(newPrefix, "x"): kept, of.path(removedPrefix, "x"): filepath.Dir(kept), filepath.Join(p.folder, "link"): "/"} {
		err = errors.Join(err, os.Symlink(to, path))
	}
	if err := errors.Join(err, os.Mkdir(filepath.Join(p.folder, "lost+found"), 0o700)); err != nil {
		t.Fatal(err)
	}
	again := startProvision(t, p.folder)
	want := fmt.Sprintf(`leaves alone in %s: ".new-clothes", "a \"file\"", "link", "target.json.bak", %q, "volume-old"`, p.folder, others[1])
	if said := again.out.text(); strings.Count(said, want) != 1 || strings.Contains(said, "lost+found") {
		t.Errorf("want %s in %s", want, said)
	}
	if left := again.left(t); len(left) != len(others)+3 { // the volume, the link and lost+found
		t.Errorf("left are %q", left)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	again.mustAsk(t, http.StatusOK, http.MethodPut, "/volume?size=1Mi", "one")
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
	v, isNew, err := p.put(t.Context(), "one", 1<<20, content{}, true)
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
	if again, isNew, err := p.put(t.Context(), "one", 1<<20, content{}, true); again != v || isNew || err != nil {
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
		"-images https://a/":               "without a scheme",
		"-images /":                        "without a scheme",
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

// The records of a newer version are not taken for those of this one: the target would serve a volume as another one, or write less.
func TestProvision_NewerRecords(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t))
	p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one")
	if code := p.end(); code != 0 {
		t.Error(code)
	}
	for _, path := range []string{filepath.Join(p.folder, targetFile), filepath.Join(volumeFolder(p.folder, "one"), volumeRecord)} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), "{", `{"version":2,`, 1)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		again := provisioner{folder: p.folder}
		err = again.load()
		for _, v := range again.volumes {
			_ = v.disk.Close()
		}
		if !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %v", path, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != changed {
			t.Errorf("%s was changed to %s, %v", path, now, err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What a newer version has recorded beside a disk is not believed, so that the claim has content of which nothing is known.
func TestReadRecord_NewerVersion(t *testing.T) {
	folder := t.TempDir()
	for text, want := range map[string]bool{`{"digest":"sha256:ab"}`: true, `{"version":2,"digest":"sha256:ab"}`: false} {
		if err := os.WriteFile(filepath.Join(folder, recordFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, ok := readRecord(folder); ok != want {
			t.Errorf("%s is %+v, %v", text, f, ok)
		}
	}
}
