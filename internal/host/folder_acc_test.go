//go:build acc

package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A pool of InFolder lists regular files only, follows no link, and leaves neither a mount nor a pool, also after an interruption.
func TestAccInFolder_ListsRegularFilesAndLeavesNothing(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	dir := filepath.Join(t.TempDir(), "with space")
	secret := filepath.Join(t.TempDir(), "secret")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(secret, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600), os.Symlink(secret, filepath.Join(dir, "link")),
		os.Symlink("nowhere", filepath.Join(dir, "dangling")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("interrupted")
	look := func(h *host.Host, inside func(pool string) error) error {
		return h.InFolder(t.Context(), dir, func(ctx context.Context, pool string) error {
			for name, want := range map[string]error{"plain": nil, "link": host.ErrNotFound, "dangling": host.ErrNotFound, "fifo": host.ErrNotFound} {
				if _, err := h.Volume(ctx, pool, name); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
			// The original folder may be private, so the folder in which its files are mounted is private, too.
			if is := acctest.Must(os.Stat(filepath.Join(on.Dir, "run", "virtclaim", pool)))(t); is.Mode().Perm() != 0o700 {
				t.Errorf("it is mounted in a folder with the mode %v", is.Mode())
			}
			// A failed unmount has left a pool, which is ended first.
			acctest.Must(on.Virsh(ctx, "pool-create-as", pool+"-unmount", "dir", "--target", t.TempDir()))(t)
			return inside(pool)
		})
	}
	other, _ := hostA(t, l)
	times := 0
	err = look(h, func(string) error {
		if times++; times > 1 {
			return nil
		}
		// Another apply takes the pool for the remains of an interrupted one.
		return errors.Join(look(other, func(string) error { return nil }), interrupted)
	})
	if err != nil || times != 2 {
		t.Errorf("after %d times: %v", times, err)
	}
	if err := look(h, func(string) error { return interrupted }); !errors.Is(err, interrupted) {
		t.Error(err)
	}
}

// A failed unmount of another folder has left a pool with the filesystem as its source, which no other pool can have then.
func TestAccInFolder_AfterABusyUnmount(t *testing.T) {
	h, on := hostA(t, acctest.Lab(t))
	dir := t.TempDir()
	source := strings.TrimSpace(string(acctest.Must(exec.CommandContext(t.Context(), "findmnt", "--noheadings", "--nofsroot", "--output", "SOURCE", "--target", dir).Output())(t)))
	busy := "virtclaim-folder-0123456789abcdef-unmount"
	err := h.InFolder(t.Context(), dir, func(ctx context.Context, pool string) error {
		_, err := on.Virsh(ctx, "pool-create-as", busy, "fs", "--source-dev", source, "--target", "/run/libvirt/virtclaim/"+pool+"/folder")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if out, err := on.Virsh(t.Context(), "pool-info", busy); err == nil {
		t.Errorf("it is left:\n%s", out)
	}
}

// Several folders of one filesystem can be inspected concurrently, by one apply and by several.
func TestAccInFolder_SeveralAtOnce(t *testing.T) {
	l := acctest.Lab(t)
	var looks errgroup.Group
	for range 2 {
		h, _ := hostA(t, l)
		for range 3 {
			dir := t.TempDir()
			looks.Go(func() error {
				for range 2 {
					if err := h.InFolder(t.Context(), dir, func(context.Context, string) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err := looks.Wait(); err != nil {
		t.Error(err)
	}
}
