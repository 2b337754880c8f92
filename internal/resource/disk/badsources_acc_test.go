//go:build acc

package disk_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// served is content on the lab's web server, and its URL as a source.
func served(t *testing.T, l *lab.Lab, content []byte) (web *lab.Web, page lab.WebFile, source string) {
	t.Helper()
	web = acctest.Must(l.Web(t.Context()))(t)
	page = acctest.Must(web.AddContent("image", content))(t)
	acctest.Undo(t, func(context.Context) error { return web.RemoveFile(page) })
	return web, page, fmt.Sprintf("source = { url = { url = %q } }", page.URL("http", web.HTTP))
}

// refused fails the test unless an apply of disks fails with all of these messages and leaves nothing.
func refused(t *testing.T, l *lab.Lab, sources map[string]string, messages map[string][]string) {
	t.Helper()
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks")
	for name, source := range sources {
		config += disk(name, source)
	}
	cli.Write("main.tf", config)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Fatalf("it succeeded:\n%s", out)
	}
	for name, parts := range messages {
		if !message(append([]string{"The disk could not be made", "Disk " + name, "host host-a"}, parts...)...).MatchString(out) {
			t.Errorf("disk %s: %q is missing in:\n%s", name, parts, out)
		}
	}
	nothingIn(t, l, "ssd")
}

// A download from a server that closes the connection is retried, from where it broke off if the server supports ranges, or else from the
// beginning.
func TestAccDisk_BrokenDownloadResumes(t *testing.T) {
	l := acctest.Lab(t)
	raw := smallImage()
	web, page, ranged := served(t, l, raw)
	_, other, whole := served(t, l, raw)
	web.WithoutRanges(other)
	registry, image := pushed(t, l, "disks/broken", raw)
	cuts := []int64{512 << 10, 0, 1, 64 << 10}
	web.Cut(page, cuts...)
	registry.Cut(cuts...)
	fromStart := []int64{64 << 10, 512 << 10, 1<<20 - 1}
	web.Cut(other, fromStart...)
	acctest.Undo(t, func(context.Context) error { registry.Cut(); return nil })

	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("ranged", ranged)+disk("whole", whole)+disk("pulled", containerImage(image.Reference)))
	cli.Must("apply", "-auto-approve", "-no-color")
	for _, name := range []string{"ranged", "whole", "pulled"} {
		sameImage(t, file(l, name), raw)
	}
	if web.Gets(page) != len(cuts)+1 || web.Gets(other) != len(fromStart)+1 {
		t.Errorf("the web server was asked %d and %d times", web.Gets(page), web.Gets(other))
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A download that never completes fails, and the error says how far it got.
func TestAccDisk_FailedDownloadLeavesNothing(t *testing.T) {
	l := acctest.Lab(t)
	web, page, broken := served(t, l, smallImage())
	_, _, wrong := served(t, l, smallImage())
	registry, image := pushed(t, l, "disks/always", smallImage())
	cuts := []int64{300000, 0, 0, 0, 0, 0, 0}
	web.Cut(page, cuts...)
	registry.Cut(cuts...)
	acctest.Undo(t, func(context.Context) error { registry.Cut(); return nil })
	refused(t, l, map[string]string{
		"broken": broken, "pulled": containerImage(image.Reference),
		"wrong": wrong[:len(wrong)-len(" } }")] + fmt.Sprintf(", checksum = \"sha256:%s\" } }", sum([]byte("another file"))),
	}, map[string][]string{
		"broken": {"the download broke off 5 times after 300000 bytes"},
		"pulled": {"container image " + image.Reference, "the download broke off 5 times after 300000 bytes"},
		"wrong":  {"the image is refused", "its checksum is sha256:" + sum(smallImage())},
	})
}

// An image with which QEMU would open another file is never written to the host.
func TestAccDisk_HostileImage(t *testing.T) {
	l := acctest.Lab(t)
	dir := t.TempDir()
	made := func(name string, args ...string) []byte {
		path := filepath.Join(dir, name)
		args = append([]string{"create", "-q", "-f", "qcow2"}, append(args, path, "1M")...)
		if out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return []byte(read(t, path))
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, smallImage(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, backed := served(t, l, made("backed", "-u", "-F", "raw", "-b", "/etc/passwd"))
	_, _, split := served(t, l, made("split", "-o", "data_file="+secret+",data_file_raw=on"))
	whole := qcow2Image(t)
	_, _, cut := served(t, l, whole[:len(whole)-64<<10])
	made("mapped")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "bitmap", "--add", filepath.Join(dir, "mapped"), "b0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, _, bitmaps := served(t, l, []byte(read(t, filepath.Join(dir, "mapped"))))
	_, _, huge := served(t, l, claiming(made("huge"), 1<<60))
	registry := acctest.Must(l.Registry(t.Context()))(t)
	two := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disks/two", Tag: "v1", Layers: []lab.ImageLayer{
			{Files: map[string][]byte{"disk/first.img": smallImage()}}, {Files: map[string][]byte{"disk/second.img": smallImage()}},
		},
	}))(t)
	_, packed := pushed(t, l, "disks/hostile", made("packed", "-u", "-F", "raw", "-b", "/etc/shadow"))
	refused(t, l, map[string]string{
		"backed": backed, "split": split, "huge": huge, "cut": cut, "bitmaps": bitmaps, "two": containerImage(two.Reference), "packed": containerImage(packed.Reference),
	}, map[string][]string{
		"backed":  {"the image is refused", "that names a backing file"},
		"split":   {"the image is refused", "that keeps its data in another file"},
		"cut":     {"the image is refused", "whose clusters end at", "It is cut off, or broken"},
		"bitmaps": {"the image is refused", "with persistent bitmaps", "qemu-img bitmap --remove"},
		"huge":    {"the image is refused", "that claims to have 1152921504606846976 bytes"},
		"two":     {"container image " + two.Reference, "it has \"/disk/second.img\" and \"/disk/first.img\""},
		"packed":  {"the image is refused", "that names a backing file"},
	})
}

// claiming is a qcow2 image whose header has that virtual size in bytes.
func claiming(qcow2 []byte, bytes uint64) []byte {
	binary.BigEndian.PutUint64(qcow2[24:], bytes)
	return qcow2
}
