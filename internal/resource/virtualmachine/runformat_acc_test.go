//go:build acc

package virtualmachine_test

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A blank disk gets a file system for the program's user at the first start, which is kept and grows with its disk.
func TestAccVirtualMachine_RunFormats(t *testing.T) {
	l := acctest.Lab(t)
	const script = `set -- $(/bin/busybox stat -c '%u:%g:%a' /data) $(/bin/busybox ls -A /data | /bin/busybox wc -l); echo "owner=$1 files=$2"
set -- $(/bin/busybox df -m /data | /bin/busybox tail -n 1); echo "size=$2"
trap 'exit 0' TERM; echo row >> /data/rows; echo "rows=$(/bin/busybox wc -l < /data/rows)"; while :; do /bin/busybox sleep 1; done`
	console := acctest.NewConsole(t)
	base := acctest.Provider(l, "machines") + runnable(t, l, script, func(c *v1.Config) { c.User, c.Env = "7:8", []string{"PATH=/bin"} }, lab.ImageLayer{
		Archive: owned(t, "data", 7, 8, 0o750),
	})
	config := func(size string, running bool) string {
		return base + fmt.Sprintf(`
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = %q
}
`, size) + runs(console, `mounts = { data = { path = "/data", format = "ext4" } }`, fmt.Sprintf("running = %v", running),
			"data = { volume = virtclaim_disk.data.volume }")
	}
	await := func(all ...string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for _, text := range all {
				console.Await(t, text)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("64Mi", true), Check: await("was blank, and has an ext4 now", "owner=7:8:750 files=0", "size=5", "rows=1")},
			{Config: config("64Mi", true), PlanOnly: true},
			{Config: config("64Mi", false), Check: await("virtclaim: exit 0")},
			{Config: config("128Mi", true), Check: await("the file system on /data has grown from", "size=12", "rows=2")},
		},
	})
}

// owned is the archive of a layer with a folder.
func owned(t *testing.T, folder string, uid, gid int, mode int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "layer.tar")
	file := acctest.Must(os.Create(name))(t)
	w := tar.NewWriter(file)
	for _, err := range []error{
		w.WriteHeader(&tar.Header{Name: strings.TrimSuffix(folder, "/") + "/", Typeflag: tar.TypeDir, Uid: uid, Gid: gid, Mode: mode}), w.Close(), file.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return name
}
