//go:build acc

package volumecontent_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// qcow2 is the same image as qcow2.
func qcow2(t *testing.T, raw string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.qcow2")
	if said, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return acctest.Must(os.ReadFile(out))(t)
}

func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fromWeb is a source of a file on a web server, with its checksum.
func fromWeb(t *testing.T, l *lab.Lab, content []byte) string {
	t.Helper()
	server := acctest.Must(l.Web(t.Context()))(t)
	file := acctest.Must(server.AddContent("image", content))(t)
	acctest.Undo(t, func(context.Context) error { return server.RemoveFile(file) })
	sum := sha256.Sum256(content)
	return fmt.Sprintf("url = { url = %q, checksum = \"sha256:%s\" }", file.URL("http", server.HTTP), hex.EncodeToString(sum[:]))
}

// pushed is a container disk on the lab's registry.
func pushed(t *testing.T, l *lab.Lab, name string, content []byte) lab.RegistryImage {
	t.Helper()
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "content", Tag: name, Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": content}}},
	}))(t)
}

// A blank volume is filled, and its content changed in place, from each kind of source.
func TestAccVolumeContent_Sources(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.CHAPSecret(t, l, "content", "chap")
	store := acctest.Storage{
		Source: fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d, secret_ref = { namespace = \"content\", name = \"chap\" } }", l.Target.Portal, lun.IQN, lun.Number),
		Stored: acctest.InFile(t, lun.Path),
	}
	const size = 3 << 20
	image := pushed(t, l, "sources", qcow2(t, imageOf(t, "a container image", size)))
	binding := fmt.Sprintf(`
resource "virtclaim_volume_binding" "other" {
  name        = "other"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { %s }
}
`, acctest.Stores["nbd"](t, l).Source)
	step := func(source, text string, size int) resource.TestStep {
		return resource.TestStep{
			Config: acctest.Provider(l, "content") + binding + filled(store.Source, source, "verify = true", "host-a"),
			Check:  func(*terraform.State) error { return stored(store, text, size) },
		}
	}
	tooLarge := step(fmt.Sprintf("file = { path = %q }", imageOf(t, "large", acctest.StorageSize+512)), "", 0)
	tooLarge.Check, tooLarge.ExpectError = nil, message("Use a larger one")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			tooLarge,
			step(fromWeb(t, l, packed(t, qcow2(t, imageOf(t, "a packed image", size)))), "a packed image", size),
			step(fmt.Sprintf("container_image = { image = %q }", image.Reference), "a container image", size),
			step("volume = virtclaim_volume_binding.other.volume", acctest.Known, len(acctest.Known)),
			step(fmt.Sprintf("file = { path = %q }", imageOf(t, "a file", size)), "a file", size),
		},
	})
}

// A claim that is a device, and one with a filesystem, are filled, overwritten and erased by pods.
func TestAccVolumeContent_Pod(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Schedule(t, l, "content")
	provider := acctest.PodProvider(t, l, "content")
	for _, kind := range []string{"device", "filesystem"} {
		t.Run(kind, func(t *testing.T) {
			spec := lab.ClaimSpec{Namespace: "content", Name: kind, Size: acctest.StorageSize, Filesystem: kind == "filesystem"}
			var store acctest.Storage
			folder := t.TempDir()
			if spec.Filesystem {
				acctest.RefuseLinks(t, l.Hosts["host-a"], folder)
				store.Stored = acctest.InFile(t, filepath.Join(folder, "disk.img"))
			} else {
				device := acctest.Must(l.AddBlockDevice(t.Context(), acctest.StorageSize, []byte(acctest.Known)))(t)
				acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
				folder, store.Stored = device.Path, acctest.InFile(t, device.Path)
			}
			spec.Source = &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}}
			spec.NodeAffinity = onNode("host-a")
			acctest.AddClaim(t, l, spec)
			binding := fmt.Sprintf("persistent_volume_claim = { namespace = \"content\", claim_name = %q, create_disk_image = %t }", kind, spec.Filesystem)
			step := func(source, more, text string, size int) resource.TestStep {
				return resource.TestStep{
					Config: provider + filled(binding, source, "via = { pod = {} }\n"+more, "host-a"),
					Check:  func(*terraform.State) error { return stored(store, text, size) },
				}
			}
			web := fromWeb(t, l, packed(t, qcow2(t, imageOf(t, "a packed image", 5<<20))))
			steps := []resource.TestStep{
				step(web, "overwrite = true", "a packed image", 5<<20),
				step(fmt.Sprintf("file = { path = %q }", imageOf(t, "a file", 4<<20)), "erase = true", "a file", 4<<20),
			}
			if !spec.Filesystem { // it is not blank
				steps = append([]resource.TestStep{{Config: provider + filled(binding, web, "via = { pod = {} }", "host-a"), ExpectError: message("it is not blank")}}, steps...)
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps:                    steps,
				CheckDestroy:             func(*terraform.State) error { return stored(store, "", 0) },
			})
		})
	}
}

// A pod copies the disk of a container image onto a claim, for which the provider does not ask the registry.
func TestAccVolumeContent_PodCopiesContainerImage(t *testing.T) {
	l := acctest.Lab(t)
	node := acctest.Schedule(t, l, "content")
	tap := acctest.TapAPI(t, l, true)
	reference := tap.NameRegistry(node)
	device := acctest.Must(l.AddBlockDevice(t.Context(), acctest.StorageSize, []byte(acctest.Known)))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
	store := acctest.Storage{
		Source: `persistent_volume_claim = { namespace = "content", claim_name = "copied" }`, Stored: acctest.InFile(t, device.Path),
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: "content", Name: "copied", Size: acctest.StorageSize, NodeAffinity: onNode("host-a"),
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: device.Path}},
	})
	const size = 5 << 20
	image := pushed(t, l, "copied", qcow2(t, imageOf(t, "a container image", size)))
	config := tap.Provider(acctest.PodProvider(t, l, "content")) + filled(store.Source, fmt.Sprintf("container_image = { image = %q }", reference(image)),
		"via = { pod = {} }\noverwrite = true\nerase = true", "host-a")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{Config: config, Check: resource.ComposeTestCheckFunc(
			resource.TestCheckResourceAttr("virtclaim_volume_content.data", "digest", image.Digest),
			func(*terraform.State) error { return stored(store, "a container image", size) },
		)}},
		CheckDestroy: func(*terraform.State) error { podsLeft(t, l, "content"); return stored(store, "", 0) },
	})
}

func onNode(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}}
}
