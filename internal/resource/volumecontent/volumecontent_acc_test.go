//go:build acc

package volumecontent_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// filled is a configuration with a binding and its content.
func filled(binding, source, more string, hosts ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["%s"]
  source = { %s }
}

resource "virtclaim_volume_content" "data" {
  target = virtclaim_volume_binding.data.volume
  source = { %s }
  %s
}
`, strings.Join(hosts, `", "`), binding, source, more)
}

// message matches a text however it is wrapped.
func message(text string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+(?:│\s+)?`))
}

// imageOf creates a raw image that begins and ends with a text.
func imageOf(t *testing.T, text string, size int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.raw")
	data := make([]byte, size)
	copy(data, text)
	copy(data[size-len(text):], text)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// stored is an error unless the storage begins with a text, and has it also at the end of an image of that size; the rest must be blank.
func stored(s acctest.Storage, text string, size int) error {
	all := []byte(s.Stored(0, acctest.StorageSize))
	want := make([]byte, acctest.StorageSize)
	copy(want, text)
	copy(want[size-len(text):], text)
	if !bytes.Equal(all, want) {
		return fmt.Errorf("the storage begins with %q, and is not the image with %q", all[:40], text)
	}
	return nil
}

// Storage is overwritten, and erased with the resource.
func TestAccVolumeContent(t *testing.T) {
	l := acctest.Lab(t)
	store := acctest.Stores["nbd"](t, l)
	const size = 1 << 20
	config := acctest.Provider(l, "content") + filled(store.Source, fmt.Sprintf("file = { path = %q }", imageOf(t, "one", size)), "overwrite = true\nerase = true", "host-a")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: func(*terraform.State) error { return stored(store, "one", size) }},
			{
				Config: config, ResourceName: "virtclaim_volume_content.data", ImportState: true, ImportStateId: "data",
				ExpectError: message("Contents of volumes can't be imported"),
			},
		},
		CheckDestroy: func(*terraform.State) error { return stored(store, "", 0) },
	})
}

// Storage of each protocol is refused while it has content, overwritten, written again, and erased.
func TestAccVolumeContent_Protocols(t *testing.T) {
	for _, protocol := range []string{"iscsi", "rbd", "nbd", "nfs", "file", "block"} {
		t.Run(protocol, func(t *testing.T) {
			l := acctest.Lab(t)
			store := acctest.Stores[protocol](t, l)
			const size = 5 << 20
			one, two := imageOf(t, "one", size), imageOf(t, "another", 2*size)
			of := func(path, more string) string {
				return acctest.Provider(l, "content") + filled(store.Source, fmt.Sprintf("file = { path = %q }", path), more, "host-a")
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: of(one, ""), ExpectError: message("it is not blank"),
				}, {
					Config: of(one, "overwrite = true"),
					Check:  func(*terraform.State) error { return stored(store, "one", size) },
				}, {
					Config: of(two, "erase = true"),
					Check:  func(*terraform.State) error { return stored(store, "another", 2*size) },
				}},
				CheckDestroy: func(*terraform.State) error { return stored(store, "", 0) },
			})
		})
	}
}
