package volume

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func asked(pairs ...string) string {
	query := url.Values{}
	for n := 0; n < len(pairs); n += 2 {
		query.Add(pairs[n], pairs[n+1])
	}
	return "/volume?" + query.Encode()
}

// A request names the image of its volume, whose disk initiators may only read. The volume stays so, also over restarts, and when its image
// is no longer admitted.
func TestProvision_ImageOfRequest(t *testing.T) {
	withSecret(t)
	host := strings.TrimPrefix(newRegistry(t).URL, "http://")
	reference := host + "/golden/disk:1"
	content := disk(4)
	push(t, reference, qcow2Of(content, true, false))
	p := startProvision(t, inMemory(t), "-images", "registry.example.org/", "-images", host+"/golden", "-arch", "amd64")
	want := asked("image", reference, "path", "/disk/disk.qcow2", "read_only", "true")
	first := p.mustAsk(t, http.StatusCreated, http.MethodPut, want, "golden")
	p.mustAsk(t, http.StatusCreated, http.MethodPut, asked("image", reference, "size", "10Mi"), "mine")
	for _, other := range []string{
		asked("size", "4Mi"), asked("image", reference), asked("image", reference, "path", "/disk/disk.qcow2"), asked("image", reference+"0", "read_only", "true"),
		asked("image", reference, "path", "/disk/disk.qcow2", "read_only", "true", "size", "4Mi"), asked("root_filesystem", reference),
	} {
		if is := p.mustAsk(t, http.StatusConflict, http.MethodPut, other, "golden"); !strings.Contains(is.text, `"`+reference+`"`) {
			t.Error(is.text)
		}
	}
	p.end()
	again := startProvision(t, p.folder)
	if is := again.mustAsk(t, http.StatusOK, http.MethodPut, want, "golden", "If-Match", "*"); is.text != strings.ReplaceAll(first.text, p.port(), again.port()) {
		t.Error(is.text)
	}
	again.mustAsk(t, http.StatusForbidden, http.MethodPut, want, "another")
	again.mustAsk(t, http.StatusPreconditionFailed, http.MethodPut, want, "another", "If-Match", "*")
	got, err := os.ReadFile(filepath.Join(volumeFolder(p.folder, "golden"), diskImage))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	again.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "golden")
	again.mustAsk(t, http.StatusNoContent, http.MethodDelete, "/volume", "mine")
	if left := again.left(t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// A volume that is only to be read is one for its LUN, also after a removal that failed.
func TestProvisioned_ReadOnlyLUN(t *testing.T) {
	p := newProvisionServer(t)
	reference := strings.TrimPrefix(newRegistry(t).URL, "http://") + "/golden/disk:1"
	push(t, reference, disk(1))
	p.image.Arch, p.images = "amd64", []string{strings.TrimSuffix(reference, "/disk:1")}
	for _, readOnly := range []bool{true, false} {
		v, _, err := p.put(t.Context(), "one", 0, content{Image: reference, ReadOnly: readOnly}, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.disk.WriteAt([]byte("written"), 0); v.lun().ReadOnly != readOnly || (err != nil) != readOnly {
			t.Errorf("%t: %v, %v", readOnly, v.lun(), err)
		}
		if err := p.remove("one"); err != nil {
			t.Error(err)
		}
	}
}

// What a request may not have is refused before anything is asked of a registry, and leaves nothing.
func TestProvision_RefusesContent(t *testing.T) {
	withSecret(t)
	p := startProvision(t, inMemory(t), "-images", "registry.invalid/golden/", "-max-size", "15Gi")
	for query, want := range map[string]struct {
		status int
		says   string
	}{
		asked("image", "registry.invalid/other/disk"):           {403, "-images"},
		asked("image", "registry.invalid/golden"):               {403, "-images"},
		asked("image", "registry.invalid/goldendisk"):           {403, "-images"},
		asked("image", "registry.invalid/golden/../other/disk"): {403, "-images"},
		asked("image", "registry.invalid/golden/./disk"):        {403, "-images"},
		asked("image", "registry.invalid:5000/golden/disk"):     {403, "-images"},
		asked("root_filesystem", "169.254.169.254/latest"):      {403, "-images"},
		asked("image", "https://registry.invalid/golden/disk"):  {403, "-images"},
		asked("image", "registry.invalid/golden/DISK"):          {400, "does not name"},
		asked("image", ""):                                                   {400, "empty"},
		asked("image", "a", "image", "b"):                                    {400, "twice"},
		asked("image", "a", "root_filesystem", "b"):                          {400, "exclude"},
		asked("size", "1Mi", "path", "/disk"):                                {400, "path is that"},
		asked("size", "1Mi", "read_only", "true"):                            {400, "needs an image"},
		asked("size", "1Mi", "read_only", "yes"):                             {400, "true or false"},
		asked("root_filesystem", "registry.invalid/golden/a", "size", "1Gi"): {400, "17179869184"},
		asked("root_filesystem", "registry.invalid/golden/a"):                {400, "-max-size"},
		asked("image", "registry.invalid/golden/disk", "size", "16Gi"):       {413, "-max-size"},
		asked("size", "1Mi", "Image", "registry.invalid/golden/disk"):        {400, "unknown"},
	} {
		if is := p.ask(t, http.MethodPut, query, "k"); is.status != want.status || !strings.Contains(is.text, want.says) {
			t.Errorf("%s: %d %s", query, is.status, is.text)
		}
	}
	if left := p.left(t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// The files of a container image's layers are in a file system, which a larger disk begins with.
func TestProvision_RootFileSystem(t *testing.T) {
	withSecret(t)
	reference := strings.TrimPrefix(newRegistry(t).URL, "http://") + "/roots/web:1"
	pushRoot(t, reference, map[string]string{"etc/motd": "below", "etc/gone": "gone"}, map[string]string{"etc/.wh.gone": "", "etc/motd": "above"})
	p := startProvision(t, t.TempDir(), "-images", reference[:strings.LastIndex(reference, "/")], "-arch", "amd64")
	p.mustAsk(t, http.StatusCreated, http.MethodPut, asked("root_filesystem", reference, "size", "20Gi"), "web")
	p.mustAsk(t, http.StatusOK, http.MethodPut, asked("root_filesystem", reference, "size", "20Gi"), "web")
	path := filepath.Join(volumeFolder(p.folder, "web"), diskImage)
	if is, err := os.Stat(path); err != nil || is.Size() != 20<<30 {
		t.Errorf("%v, %v", is, err)
	}
	if is := recordOf(t, p.folder, "web"); !strings.HasPrefix(is.Digest, "sha256:") || is.RootFileSystem != reference {
		t.Errorf("%+v", is)
	}
	checkRoot(t, path)
}

// checkRoot looks into a file system with tools that not every machine has.
func checkRoot(t *testing.T, path string) {
	t.Helper()
	for _, c := range []struct{ command, want string }{
		{"e2fsck -fn " + path, "/1048576 files"}, {"debugfs -R ls\t-p\t/etc " + path, "/motd/"}, {"debugfs -R cat\t/etc/motd " + path, "above"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.command, "\t", "\x00"))
		if _, err := exec.LookPath(args[0]); err != nil {
			continue
		}
		for n := range args {
			args[n] = strings.ReplaceAll(args[n], "\x00", " ")
		}
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "/gone/") {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	magic := make([]byte, 2)
	if _, err := file.ReadAt(magic, 1024+0x38); err != nil || string(magic) != "\x53\xef" {
		t.Errorf("%v, %q", err, magic)
	}
}

// pushRoot pushes an image for linux/amd64 with a layer of each map, by path and content.
func pushRoot(t *testing.T, reference string, layers ...map[string]string) {
	t.Helper()
	config, err := empty.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range layers {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for path, text := range files {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(text))}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	to, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, image); err != nil {
		t.Fatal(err)
	}
}
