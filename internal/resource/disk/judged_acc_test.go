//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A disk is not deleted for a content that is no disk: the plan refuses it.
func TestAccDisk_JudgedBeforeReplacement(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	change(1)
	web := acctest.Must(l.Web(t.Context()))(t)
	page := acctest.Must(web.AddContent("image", smallImage()))(t)
	first := fmt.Sprintf("source = { url = { url = %q } }", page.URL("http", web.HTTP))
	cli := acctest.NewCLI(t)
	configure := func(fileAt, url, image string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("local", fromFile(fileAt))+disk("web", url)+disk("pulled", containerImage(image)))
	}
	_, image := pushed(t, l, "disks/judged", smallImage())
	configure(path, first, image.Reference)
	cli.Must("apply", "-auto-approve", "-no-color")
	was := contents(t, l)

	_, _, noDisk := served(t, l, slices.Concat([]byte("KDMV"), smallImage()))
	_, foreign := pushed(t, l, "disks/vhdx", slices.Concat([]byte("vhdxfile"), smallImage()))
	writeFile(t, path, "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 4\n")
	other := filepath.Join(t.TempDir(), "other")
	for _, c := range []struct {
		file, url, image string
		want             []string
	}{
		{path, noDisk, foreign.Reference, []string{"a pointer of Git LFS", "in the format VMDK", "in the format VHDX"}},
		{other, strings.Replace(first, "\" } }", "-none\" } }", 1), image.Reference + "-none", []string{"there is no file", "404", "the registry does not have it"}},
	} {
		configure(c.file, c.url, c.image)
		for _, command := range []string{"plan", "apply"} {
			args := []string{command, "-no-color"}
			if command == "apply" {
				args = append(args, "-auto-approve")
			}
			out, err := cli.Run(args...)
			for _, want := range c.want {
				if err == nil || !message(want).MatchString(out) {
					t.Errorf("%s: %q is missing (%v):\n%s", command, want, err, out)
				}
			}
		}
		if is := contents(t, l); is != was {
			t.Errorf("a disk has changed: %.60q, and was %.60q", is, was)
		}
	}
	change(1)
	configure(path, first, image.Reference)
	if err := web.RemoveFile(page); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-replace=virtclaim_disk.web"}, {"-replace=virtclaim_disk.local", "-replace=virtclaim_disk.web"}} {
		out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		if err == nil || !message("The disk can't be replaced", "404").MatchString(out) || contents(t, l) != was {
			t.Errorf("%v ends with %v, and the disks have changed: %v\n%s", args, err, contents(t, l) != was, out)
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color", "-refresh=false") // what can't be applied
	nothingIn(t, l, "ssd")
}

// A replacement may have another format. The plan says what would make the apply fail after it has deleted the former disk, and refuses a host that
// does not answer.
func TestAccDisk_ReplacementByWhatIsThere(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	change(1)
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks") + disk("local", fromFile(path))
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	writeFile(t, path, string(qcow2Image(t)))
	cli.Must("apply", "-auto-approve", "-no-color")
	sameImage(t, file(l, "local"), rawImage())

	virsh(t, l, "vol-create-as", "ssd", "taken", "1M")
	cli.Write("main.tf", strings.Replace(config, `name       = "local"`, `name       = "taken"`, 1))
	if plan := cli.Must("plan", "-no-color"); !message(`frees the name "taken" in pool "ssd"`).MatchString(plan) {
		t.Errorf("the plan does not warn:\n%s", plan)
	}
	virsh(t, l, "vol-delete", "taken", "--pool", "ssd")
	cli.Write("main.tf", strings.NewReplacer(`host       = "host-a"`, `host       = "silent"`, "hosts = {",
		`hosts = {`+"\n"+`silent = { uri = "qemu:///system?socket=/nowhere", storage = { fast = "ssd" } }`).Replace(config))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("The disk can't be replaced", "libvirt can't be reached").MatchString(out) {
		t.Errorf("a silent host: %v\n%s", err, out)
	}
	sameImage(t, file(l, "local"), rawImage())
	cli.Write("main.tf", config)
	isSettled(t, cli)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// contents are those of the disks of TestAccDisk_JudgedBeforeReplacement.
func contents(t *testing.T, l *lab.Lab) string {
	t.Helper()
	return fmt.Sprint(read(t, file(l, "local")), read(t, file(l, "web")), read(t, file(l, "pulled")))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that was in another folder, as on another computer, is no change, whether it is there or not.
func TestAccDisk_FileOfAnotherComputer(t *testing.T) {
	l := acctest.Lab(t)
	path, change := changing(t)
	content := change(1)
	cli := acctest.NewCLI(t)
	configure := func(path string) { cli.Write("main.tf", acctest.Provider(l, "disks")+disk("local", fromFile(path))) }
	configure(path)
	cli.Must("apply", "-auto-approve", "-no-color")
	inode := acctest.Must(os.Stat(file(l, "local")))(t)
	there := filepath.Join(t.TempDir(), filepath.Base(path))
	writeFile(t, there, content)
	for _, elsewhere := range []string{there, filepath.Join(t.TempDir(), filepath.Base(path))} {
		configure(elsewhere)
		acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
		isSettled(t, cli)
	}
	if !os.SameFile(inode, acctest.Must(os.Stat(file(l, "local")))(t)) {
		t.Error("the disk was made again")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
