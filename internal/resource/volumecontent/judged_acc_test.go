//go:build acc

package volumecontent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What a guest has written since is overwritten by a content that is replaced by one of the same volume.
func TestAccVolumeContent_ReplacedBeforeDestroyed(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "content-faults", "data", lun)
	file := imageOf(t, "one", imageSize)
	cli, _ := acctest.Tapped(t, l, "faults")
	cli.Write("main.tf", claimed("data", file, "overwrite = true\n lifecycle {\n create_before_destroy = true\n}"))
	defer cli.Must("destroy", "-auto-approve", "-no-color")
	cli.Must("apply", "-auto-approve", "-no-color")
	guest := acctest.Must(os.OpenFile(lun.Path, os.O_WRONLY, 0))(t)
	acctest.Must(guest.WriteAt([]byte("of a guest"), 4096))(t)
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_volume_content.data")
	isFilled(t, lun, file)
}

// A volume keeps its content if the new one is refused, and no error names a size, which a content does not have.
func TestAccVolumeContent_JudgedBeforeWritten(t *testing.T) {
	l := acctest.Lab(t)
	store := acctest.Stores["nbd"](t, l)
	const size = 1 << 20
	path := imageOf(t, "one", size)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "content")+filled(store.Source, fmt.Sprintf("file = { path = %q }", path), "overwrite = true", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	for want, content := range map[string]string{
		"a pointer of Git LFS":                  "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 4\n",
		"in the format VMDK":                    "KDMV" + string(make([]byte, size)),
		"and the volume 64Mi. Use a larger one": string(make([]byte, acctest.StorageSize+512)),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := cli.Run("plan", "-no-color")
		if err == nil || !message(want).MatchString(out) {
			t.Errorf("%q is missing (%v):\n%s", want, err, out)
		}
		if err := stored(store, "one", size); err != nil {
			t.Error(err)
		}
	}
	cli.Write("main.tf", acctest.Provider(l, "content")+filled(store.Source, fmt.Sprintf("file = { path = %q }", filepath.Join(t.TempDir(), "other")), "overwrite = true", "host-a"))
	if out, err := cli.Run("plan", "-no-color"); err == nil || !message("there is no file").MatchString(out) {
		t.Errorf("a missing file is planned (%v):\n%s", err, out)
	}
	cli.Write("main.tf", acctest.Provider(l, "content")+filled(store.Source, fmt.Sprintf("file = { path = %q }", filepath.Join(t.TempDir(), filepath.Base(path))), "overwrite = true", "host-a"))
	acctest.Contains(t, cli.Must("plan", "-no-color"), "0 to add, 1 to change, 0 to destroy") // on another computer
	cli.Must("destroy", "-auto-approve", "-no-color")
}
