package rootfs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// A blank file system of each size is sound, and has the parts that it says.
func TestBlank_Sizes(t *testing.T) {
	check, err := exec.LookPath("e2fsck")
	for _, size := range []int64{rootfs.MinBlank, 64 << 20, 127<<20 + 512, 128 << 20, 3 << 30, 100 << 30, rootfs.MaxBlank} {
		b := rootfs.Blank{ID: [16]byte{1, 2, 3}, Blocks: uint32(size / rootfs.BlockSize), UID: 70, GID: 71, Mode: 0o1750}
		file, createErr := os.Create(filepath.Join(t.TempDir(), "disk"))
		if createErr != nil {
			t.Fatal(createErr)
		}
		for at, content := range b.Content() {
			if at+int64(len(content)) > b.Size() || b.Size() > size/2 {
				t.Errorf("of %d bytes: %d bytes at %d, and it uses %d", size, len(content), at, b.Size())
			}
			if _, err := file.WriteAt(content, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Truncate(min(size, 128<<20)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			continue // as the other tests of this package without one
		}
		if out, err := exec.CommandContext(t.Context(), check, "-fn", file.Name()).CombinedOutput(); err != nil {
			t.Errorf("of %d bytes: %v: %s", size, err, out)
		}
	}
}
