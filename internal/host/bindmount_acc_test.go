//go:build acc

package host_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What is mounted below a folder is mounted at the target until that ends, without links being followed. Neither a pool nor a folder is left.
func TestAccBindMount(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	dir := filepath.Join(t.TempDir(), "with space")
	mounted, target := filepath.Join(dir, "csi", "volume", "mount"), "/run/libvirt/virtclaim/claim-test"
	run := func(text string) (string, error) { return on.Run(t.Context(), text) }
	must := func(text string) string {
		t.Helper()
		out, err := run(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return out
	}
	is := func(want bool) {
		t.Helper()
		if has, err := h.HasBindMount(t.Context(), dir, "volume", target); err != nil || has != want {
			t.Errorf("it is mounted: %v, %v", has, err)
		}
	}
	must(fmt.Sprintf("mkdir -p '%s' '%[2]s/dir/other' && mount -t tmpfs none '%[2]s/dir/other'", mounted, dir))
	if err := h.BindMount(t.Context(), dir, "volume", target, func() error { return nil }); !errors.Is(err, host.ErrNotMounted) {
		t.Errorf("with nothing below: %v", err)
	}
	mount := fmt.Sprintf("mount -t tmpfs none '%[1]s' && echo precious >'%[1]s/file' && ln -s file '%[1]s/link'", mounted)
	must(mount)
	is(false)
	must("mkdir -p " + target) // what a killed one left
	for n := range 2 {
		if n == 1 {
			sum := sha256.Sum256([]byte(target))
			virsh(t, on, "pool-define-as", "virtclaim-bind-"+hex.EncodeToString(sum[:8]), "dir", "--target", target)
		}
		if err := h.BindMount(t.Context(), dir, "volume", target, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		is(true)
	}
	noPool := func() {
		t.Helper()
		if pools := virsh(t, on, "pool-list", "--all", "--name"); strings.Contains(pools, "virtclaim-bind-") {
			t.Errorf("a pool is left:\n%s", pools)
		}
	}
	noPool()
	if n := strings.Count(must("cat /proc/self/mountinfo"), target); n != 1 {
		t.Errorf("it is mounted %d times", n)
	}
	must(fmt.Sprintf("umount '%s'", mounted))
	if out := must("cat " + target + "/file"); strings.TrimSpace(out) != "precious" {
		t.Errorf("without the other mount it has %q", out)
	}
	if _, err := run("cat " + target + "/link"); err == nil {
		t.Error("a link is followed")
	}
	is(false)
	must(mount)
	is(false)
	if err := h.BindMount(t.Context(), dir, "volume", target, func() error { return host.ErrExists }); !errors.Is(err, host.ErrExists) {
		t.Errorf("it was changed, though it may not: %v", err)
	}
	is(false)
	if err := h.BindMount(t.Context(), dir, "volume", target, func() error { return nil }); err != nil {
		t.Error(err)
	}
	is(true)
	must("sleep 60 <" + target + "/file >/dev/null 2>&1 & echo $! >/run/reader")
	if err := h.EndBindMount(t.Context(), target); err == nil {
		t.Error("it was unmounted in use")
	}
	is(true)
	must("kill $(cat /run/reader); tail --pid=$(cat /run/reader) -f /dev/null")
	for range 2 {
		if err := h.EndBindMount(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
	if out, err := run("ls -d " + target); err == nil {
		t.Errorf("the folder is left: %s", out)
	}
	noPool()
	must(fmt.Sprintf("umount '%s' '%s/dir/other'", mounted, dir))
}
