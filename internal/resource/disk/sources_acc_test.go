//go:build acc

package disk_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// imageSize is the virtual size in bytes of the tests' images.
const imageSize = 8 << 20

// rawImage is half noise and half holes.
func rawImage() []byte {
	b := make([]byte, imageSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b[:imageSize/4])
	_, _ = rand.NewChaCha8([32]byte{2}).Read(b[imageSize/2 : 3*imageSize/4])
	return b
}

// smallImage is a raw image of noise, for tests that read it without a guest.
func smallImage() []byte {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(b)
	return b
}

// qcow2Image has the same content as rawImage.
func qcow2Image(t *testing.T) []byte {
	t.Helper()
	return qcow2Of(t, rawImage())
}

// qcow2Of is a raw image as qcow2.
func qcow2Of(t *testing.T, raw []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "raw"), filepath.Join(dir, "qcow2")
	if err := os.WriteFile(from, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []byte(read(t, to))
}

// sameImage fails the test unless a guest would see that content of a disk.
func sameImage(t *testing.T, path string, raw []byte) {
	t.Helper()
	master := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(master, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	format := "raw"
	if strings.HasPrefix(read(t, path), "QFI\xfb") {
		format = "qcow2"
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "compare", "-f", format, "-F", "raw", path, master).CombinedOutput()
	if err != nil {
		t.Errorf("%s has something else: %v: %s", path, err, out)
	}
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// pushed is a container disk in the lab's registry.
func pushed(t *testing.T, l *lab.Lab, repository string, content []byte) (*lab.Registry, lab.RegistryImage) {
	t.Helper()
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return registry, acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: repository, Tag: "v1", Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/image": content}}},
	}))(t)
}

func containerImage(reference string) string {
	return fmt.Sprintf("source = { container_image = { image = %q } }", reference)
}

// readAll has the guest print the checksum of the first bytes of each of its disks.
var readAll = fmt.Sprintf("for d in a b c d; do echo SUM $d $(head -c %d /dev/vd$d | sha256sum); done", imageSize)

// A guest reads the content that the registry, the web server or the file has.
func TestAccDisk_GuestReadsSource(t *testing.T) {
	l := acctest.Lab(t)
	registry, image := pushed(t, l, "disks/guest", qcow2Image(t))
	web := acctest.Must(l.Web(t.Context()))(t)
	served := packed(t, rawImage())
	page := acctest.Must(web.AddContent("image.raw.gz", served))(t)
	file := filepath.Join(t.TempDir(), "image.qcow2")
	if err := os.WriteFile(file, qcow2Image(t), 0o600); err != nil {
		t.Fatal(err)
	}
	config, checks, disks := acctest.Provider(l, "disks"), []statecheck.StateCheck{}, []string{}
	for _, c := range []struct{ name, source, format, digest string }{
		{"a-container", containerImage(image.Reference), "qcow2", image.Digest},
		{"b-private", fmt.Sprintf("source = { container_image = { image = %q, username = %q, password_wo = %q } }",
			image.Private, registry.Username, registry.Password), "qcow2", image.Digest},
		{
			"c-url", fmt.Sprintf("source = { url = { url = %q, checksum = \"sha256:%s\" } }", page.URL("http", web.HTTP), sum(served)),
			"raw", "sha256:" + sum(served),
		},
		{"d-file", fmt.Sprintf("source = { file = { path = %q } }", file), "qcow2", "sha256:" + sum([]byte(read(t, file)))},
	} {
		config += disk(c.name, "size = \"16Mi\"\n"+c.source)
		checks = append(checks, known(c.name, "format", c.format), known(c.name, "digest", c.digest))
		disks = append(disks, on(c.name, "virtclaim_disk."+c.name, ""))
	}
	console := acctest.NewConsole(t)
	config += vm(l, console, run(readAll), "", disks...)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config, ConfigStateChecks: checks,
				Check: func(*terraform.State) error {
					for _, device := range []string{"a", "b", "c", "d"} {
						acctest.Contains(t, console.Await(t, "SUM "+device), sum(rawImage()))
						acctest.Contains(t, console.Await(t, "DISK vd"+device), "bytes=16777216")
					}
					return nil
				},
			},
			{Config: config, PlanOnly: true},
		},
	})
}

func known(disk, attribute, value string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue("virtclaim_disk."+disk, tfjsonpath.New(attribute), knownvalue.StringExact(value))
}
