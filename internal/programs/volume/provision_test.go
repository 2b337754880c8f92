package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
)

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

// A volume grows when that is asked with If-Match, up to the limit, and never shrinks. Growth that was interrupted anywhere is finished by the next
// request, and the volume is served until then.
func TestProvision_Grows(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t), "-max-size", "8Mi")
	answer := p.mustAsk(t, http.StatusCreated, http.MethodPut, "/volume?size=1Mi", "one").text
	for _, c := range []struct {
		size, ifMatch string
		status        int
		bytes         int64
	}{
		{"2Mi", "", http.StatusConflict, 1 << 20},
		{"3145727", "*", http.StatusOK, 3 << 20}, // in whole mebibytes
		{"3145727", "", http.StatusOK, 3 << 20},
		{"3Mi", "*", http.StatusOK, 3 << 20},
		{"2Mi", "*", http.StatusConflict, 3 << 20},
		{"9Mi", "*", http.StatusRequestEntityTooLarge, 3 << 20},
		{"8Mi", "*", http.StatusOK, 8 << 20},
	} {
		is := p.mustAsk(t, c.status, http.MethodPut, "/volume?size="+c.size, "one", "If-Match", c.ifMatch)
		if c.status == http.StatusOK && is.text != answer {
			t.Errorf("%s: %s", c.size, is.text)
		}
		if at, err := os.Stat(filepath.Join(volumeFolder(p.folder, "one"), diskImage)); err != nil || at.Size() != c.bytes {
			t.Errorf("%s: %v, %v", c.size, at, err)
		}
	}
	p.mustAsk(t, http.StatusPreconditionFailed, http.MethodPut, "/volume?size=2Mi", "two", "If-Match", "*")
	p.end()
	for _, left := range []string{"", `{"key": "one", "si`} { // the file is longer already; a record was begun, too
		folder := volumeFolder(p.folder, "one")
		if err := os.Truncate(filepath.Join(folder, diskImage), 12<<20); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, volumeRecord+newSuffix), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		again := startProvision(t, p.folder)
		size := recordOf(t, p.folder, "one").Size
		again.mustAsk(t, http.StatusOK, http.MethodPut, fmt.Sprintf("/volume?size=%d", size), "one")
		again.mustAsk(t, http.StatusOK, http.MethodPut, fmt.Sprintf("/volume?size=%d", size+1<<20), "one", "If-Match", "*")
		if is := recordOf(t, p.folder, "one"); is.Size != size+1<<20 || is.Serial == "" {
			t.Errorf("%+v", is)
		}
		again.end()
	}
}

// A record that can't be written leaves the size as it is, and the next request finishes.
func TestProvisioner_GrowthThatFails(t *testing.T) {
	s := newProvisionServer(t)
	v, _, err := s.put(t.Context(), "one", 1<<20, content{}, true)
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(s.path(volumePrefix, "one"), volumeRecord+newSuffix, "file")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.put(t.Context(), "one", 2<<20, content{}, false); err == nil || v.Size != 1<<20 || v.disk.Size() != 1<<20 {
		t.Errorf("%v, %+v", err, v)
	}
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.put(t.Context(), "one", 2<<20, content{}, false); err != nil || v.disk.Size() != 2<<20 || recordOf(t, s.folder, "one").Size != 2<<20 {
		t.Errorf("%v, %+v", err, v)
	}
}

// A volume that was made without a size grows beyond its image.
func TestProvisioner_GrowsBeyondImage(t *testing.T) {
	s := newProvisionServer(t)
	v, _, err := s.put(t.Context(), "one", 3<<20, content{}, true)
	if err != nil {
		t.Fatal(err)
	}
	v.Size = 0
	for _, c := range []struct {
		size int64
		ok   bool
	}{{2 << 20, false}, {4 << 20, true}, {3 << 20, false}} {
		if _, _, err := s.put(t.Context(), "one", c.size, content{}, false); (err == nil) != c.ok {
			t.Errorf("%d: %v", c.size, err)
		}
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
	if v, _, err := s.put(t.Context(), "last", 1<<20, content{}, true); err != nil || v.LUN != iscsi.MaxLUN {
		t.Errorf("%v %v", v, err)
	}
	if v, _, err := s.put(t.Context(), "first", 1<<20, content{}, true); err != nil || v.LUN != 0 {
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
