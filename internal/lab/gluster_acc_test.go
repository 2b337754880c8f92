//go:build acc

package lab

import (
	"fmt"
	"testing"
)

func TestAccGluster_GuestUsesIt(t *testing.T) {
	l := sharedLab(t)
	gluster, err := l.Gluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := gluster.AddImage(lunSize, []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	disk := networkDisk(t, fmt.Sprintf("protocol='gluster' name='%s/%s'", image.Volume, image.Image), gluster.Server, "")
	guestUses(t, l.Hosts["host-a"], disk, "content", func() {
		if got := storedAt(t, image.Path, 4096, len(fromGuest)); got != fromGuest {
			t.Errorf("the brick has %q", got)
		}
	})
	if err := gluster.RemoveImage(image); err != nil {
		t.Error(err)
	}
}
