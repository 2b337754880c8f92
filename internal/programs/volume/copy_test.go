package volume

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// The password comes from a mounted dockerconfigjson, and the image by its tag for the node's architecture.
func TestCopy_PullSecret(t *testing.T) {
	server := newRegistry(t)
	password := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:let-me-in"))
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		server.Config.Handler.ServeHTTP(w, r)
	}))
	defer private.Close()
	content := disk(3)
	push(t, strings.TrimPrefix(server.URL, "http://")+"/disks/golden:1", qcow2Of(content, false, false))

	secret := t.TempDir()
	t.Setenv("DOCKER_CONFIG", secret)
	t.Setenv("TERMINATION_LOG", filepath.Join(secret, "missing"))
	reference := strings.TrimPrefix(private.URL, "http://") + "/disks/golden:1"
	folder := inMemory(t)
	var out output
	if code := Run(t.Context(), []string{"copy", "-arch", "amd64", "-volume", folder, reference}, "", &out); code != 1 || !strings.Contains(out.text(), "401") {
		t.Errorf("without a password: exit code %d: %s", code, out.text())
	}
	config := fmt.Sprintf(`{"auths": {%q: {"username": "me", "password": "let-me-in"}}}`, strings.TrimPrefix(private.URL, "http://"))
	if err := os.WriteFile(filepath.Join(secret, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out = output{}
	code := Run(t.Context(), []string{"copy", "-arch", "amd64", "-volume", folder, reference}, "", &out)
	got, err := os.ReadFile(filepath.Join(folder, diskImage))
	if code != 0 || err != nil || !bytes.Equal(got, content) || strings.Contains(out.text(), "let-me-in") {
		t.Errorf("exit code %d, %v: %s", code, err, out.text())
	}
	if f, ok := readRecord(folder); !ok || f.Format != "qcow2" || f.Capacity != int64(len(content)) || !strings.HasPrefix(f.Digest, "sha256:") {
		t.Errorf("recorded is %+v", f)
	}
	out = output{}
	if code := Run(t.Context(), []string{"copy", "-arch", "amd64", "-volume", folder, reference}, "", &out); code != 0 || !strings.Contains(out.text(), "filled with") {
		t.Errorf("again: exit code %d: %s", code, out.text())
	}
	push(t, strings.TrimPrefix(server.URL, "http://")+"/disks/golden:1", disk(4))
	out = output{}
	if code := Run(t.Context(), []string{"copy", "-arch", "amd64", "-volume", folder, reference}, "", &out); code != podwire.ExitFilled || !strings.Contains(out.text(), "content already") {
		t.Errorf("another image: exit code %d: %s", code, out.text())
	}
	out = output{}
	code = Run(t.Context(), []string{"copy", "-arch", "amd64", "-overwrite", "-volume", folder, reference}, "", &out)
	if got, err := os.ReadFile(filepath.Join(folder, diskImage)); code != 0 || err != nil || !bytes.Equal(got, disk(4)) {
		t.Errorf("overwritten: exit code %d, %v: %s", code, err, out.text())
	}
	if err := os.WriteFile(filepath.Join(folder, diskImage), bytes.Repeat([]byte{1}, len(disk(4))), 0o600); err != nil { // as a guest might
		t.Fatal(err)
	}
	out = output{}
	code = Run(t.Context(), []string{"copy", "-arch", "amd64", "-overwrite", "-volume", folder, reference}, "", &out)
	if got, err := os.ReadFile(filepath.Join(folder, diskImage)); code != 0 || err != nil || !bytes.Equal(got, disk(4)) {
		t.Errorf("the same image again: exit code %d, %v: %s", code, err, out.text())
	}
}

func newRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return server
}

// push pushes an index with one image, of this architecture.
func push(t *testing.T, reference string, image []byte) {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "disk/disk.qcow2", Mode: 0o444, Size: int64(len(image))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(image); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	content, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: content, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "linux", Architecture: "amd64"},
	}}, mutate.IndexAddendum{Add: empty.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	to, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(to, index); err != nil {
		t.Fatal(err)
	}
}
