package volume

import "testing"

// Below an overlay a disk is read-shared, whatever its own machine may do with it; a bound image keeps the mode of its binding.
func TestVolume_Uses(t *testing.T) {
	disk := Image{Type: "file", AccessMode: WriteExclusive}
	bound := Image{Type: "file", AccessMode: WriteExclusive, Binding: "data"}
	network := Image{Type: "network", AccessMode: WriteExclusive}
	v := Volume{Images: []Image{disk, disk, bound, network}}
	for depth, want := range []AccessMode{WriteExclusive, ReadShared, WriteExclusive, WriteExclusive} {
		if got := v.Uses()[depth].AccessMode; got != want {
			t.Errorf("the image at depth %d is used %s, not %s", depth, got, want)
		}
	}
	if v.Images[1].AccessMode != WriteExclusive {
		t.Error("the volume itself has changed")
	}
}
