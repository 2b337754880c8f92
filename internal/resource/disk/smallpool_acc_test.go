//go:build acc

package disk_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// room is the size in bytes of the storage of the usage type tiny.
const room = 1 << 20

// tiny adds storage that is soon full, and returns a function that removes it.
func tiny(t *testing.T, l *lab.Lab, bytes int64) (remove func()) {
	t.Helper()
	gone := acctest.Must(l.Hosts["host-a"].AddSmallPool(t.Context(), "tiny", bytes))(t)
	removed := false
	remove = func() {
		if removed {
			return
		}
		removed = true
		if err := gone(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(remove)
	return remove
}

func inTiny(config string) string { return strings.ReplaceAll(config, `"fast"`, `"tiny"`) }

// nothingIn fails the test when a pool has a volume, or the host a journal.
func nothingIn(t *testing.T, l *lab.Lab, pool string) {
	t.Helper()
	virsh(t, l, "pool-refresh", pool)
	if out := virsh(t, l, "vol-list", pool) + virsh(t, l, "list", "--all", "--name"); strings.Contains(out, "/") || strings.Contains(out, "virtclaim") {
		t.Errorf("something was left: %s", out)
	}
}

// libvirt confirms uploads whose last bytes did not fit: so the image ends just before, at, and after the end of the storage.
func TestAccDisk_FullPoolLeavesNothing(t *testing.T) {
	l := acctest.Lab(t)
	tiny(t, l, room)
	web := acctest.Must(l.Web(t.Context()))(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", strings.ReplaceAll(acctest.Provider(l, "disks"), `slow =`, `tiny = "tiny", slow =`))
	from := func(size int) (raw []byte) {
		raw = bytes.Repeat(smallImage(), 2)[:size]
		page := acctest.Must(web.AddContent("image.raw", raw))(t)
		acctest.Undo(t, func(context.Context) error { return web.RemoveFile(page) })
		cli.Write("main.tf", inTiny(disk("root", fmt.Sprintf("source = { url = { url = %q } }", page.URL("http", web.HTTP)))))
		return raw
	}
	for _, more := range []int{1, 4096, 64<<10 + 1, room} {
		from(room + more)
		out, err := cli.Run("apply", "-auto-approve", "-no-color")
		if err == nil || !message("The disk could not be made", "full").MatchString(out) && !message("No space left").MatchString(out) {
			t.Errorf("%d bytes too many: %v\n%s", more, err, out)
		}
		nothingIn(t, l, "tiny")
	}
	raw := from(room)
	cli.Must("apply", "-auto-approve", "-no-color")
	if got := acctest.Must(l.Hosts["host-a"].ReadFile(t.Context(), filepath.Join(l.Hosts["host-a"].Pools, "tiny", "root")))(t); !bytes.Equal(got, raw) {
		t.Error("what just fits has something else")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The storage needs room for the shared image, and for the disk.
func TestAccDisk_FullPoolLeavesNoSharedImage(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", strings.ReplaceAll(acctest.Provider(l, "disks"), `slow =`, `tiny = "tiny", slow =`))
	_, image := pushed(t, l, "disks/tiny", smallImage())
	cli.Write("main.tf", inTiny(disk("root", containerImage(image.Reference))))
	for _, has := range []int64{room - 4096, room} {
		remove := tiny(t, l, has)
		out, err := cli.Run("apply", "-auto-approve", "-no-color")
		if err == nil || !message("The disk could not be made").MatchString(out) {
			t.Errorf("with %d bytes: %v\n%s", has, err, out)
		}
		nothingIn(t, l, "tiny")
		remove()
	}
	tiny(t, l, 2*room)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
	nothingIn(t, l, "tiny")
}
