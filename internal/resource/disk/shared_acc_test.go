//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The requests of a pull and an upload of one image: a blob, and the body and the header of a volume.
const (
	blobsOfAnImage   = 1
	uploadsOfAnImage = 2
)

// inPool are the names of the volumes of host-a.
func inPool(t *testing.T, l *lab.Lab) (bases, others []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file(l, "any")))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "virtclaim-base-") {
			bases = append(bases, e.Name())
		} else {
			others = append(others, e.Name())
		}
	}
	return bases, others
}

func TestAccDisk_OneImageOnePullOneUpload(t *testing.T) {
	const many = 50
	l := acctest.Lab(t)
	registry, image := pushed(t, l, "disks/many", qcow2Of(t, smallImage()))
	cli, tap := acctest.Tapped(t, l, "disks")
	cli.Write("main.tf", strings.Replace(strings.Replace(disk("root", containerImage(image.Reference)),
		`"root"`+"\n", `"root-${count.index}"`+"\n", 1), "host  ", fmt.Sprintf("count = %d\n  host  ", many), 1))
	pulls, started := registry.Pulls(), time.Now()
	cli.Must("apply", "-auto-approve", "-no-color")
	t.Logf("making %d disks took %s", many, time.Since(started))

	bases, disks := inPool(t, l)
	if len(bases) != 1 || len(disks) != many {
		t.Errorf("the pool has %d shared images and %d disks", len(bases), len(disks))
	}
	if n := registry.Pulls() - pulls; n != blobsOfAnImage {
		t.Errorf("%d blobs were pulled", n)
	}
	if n := tap.Calls(lab.CallVolumeUpload); n != uploadsOfAnImage+many { // and the identity of each
		t.Errorf("%d uploads were begun", n)
	}
	started = time.Now()
	cli.Must("destroy", "-auto-approve", "-no-color")
	t.Logf("removing them took %s", time.Since(started))
}

// Two independent configurations need the same image at the same time.
func TestAccDisk_ConcurrentAppliesShareImage(t *testing.T) {
	for name, owners := range map[string][2]string{"two owners": {"ours", "theirs"}, "one owner": {"disks", "disks"}} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			registry, image := pushed(t, l, "disks/both", qcow2Of(t, smallImage()))
			pulls, uploads := registry.Pulls(), 0
			var folders [2]acctest.CLI
			var taps [2]*lab.Tap
			for i := range folders {
				folders[i], taps[i] = acctest.Tapped(t, l, owners[i])
				folders[i].Write("main.tf", disk(fmt.Sprintf("root-%d", i), containerImage(image.Reference)))
			}
			apply := []string{"apply", "-auto-approve", "-no-color"}
			together(t, folders, apply, apply)
			for _, tap := range taps {
				uploads += tap.Calls(lab.CallVolumeUpload)
			}
			if n := registry.Pulls() - pulls; n != blobsOfAnImage || uploads != uploadsOfAnImage+2 { // and the identity of each
				t.Errorf("%d blobs were pulled, and %d uploads begun", n, uploads)
			}
			bases, disks := inPool(t, l)
			if len(bases) != 1 || len(disks) != 2 {
				t.Errorf("the pool has %v and %v", bases, disks)
			}
			// Both release it, and one needs it again.
			together(t, folders, []string{"destroy", "-auto-approve", "-no-color"}, append(apply, "-replace=virtclaim_disk.root-1"))
			sameImage(t, file(l, "root-1"), smallImage())
			folders[1].Must("destroy", "-auto-approve", "-no-color")
			if bases, disks := inPool(t, l); len(bases)+len(disks) != 0 {
				t.Errorf("the pool has %v and %v", bases, disks)
			}
		})
	}
}

// together runs a command in each of two folders at once.
func together(t *testing.T, folders [2]acctest.CLI, args ...[]string) {
	t.Helper()
	var waits []func()
	for i, cli := range folders {
		cmd, output := cli.Start(args[i]...)
		waits = append(waits, func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %v\n%s", args[i], err, output())
			}
		})
	}
	for _, wait := range waits {
		wait()
	}
}
