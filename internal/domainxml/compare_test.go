package domainxml

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Where a guest and its next start have different media, the drive shows neither medium and is not empty: any configuration is a
// change.
func TestCompare_MediumOfOneSideOnly(t *testing.T) {
	for name, c := range map[string]struct {
		stored, live, want volume.Volume
		conflicting        bool
	}{
		"the same":                       {seed("seed", "g1"), seed("seed", "g1"), seed("seed", "g1"), false},
		"none":                           {},
		"none yet":                       {stored: seed("seed", "g1"), conflicting: true},
		"still the old one":              {stored: seed("new", "g2"), live: seed("seed", "g1"), conflicting: true},
		"still the old one of that name": {stored: seed("seed", "g2"), live: seed("seed", "g1"), conflicting: true},
		"one that is stored no more":     {live: seed("seed", "g1"), conflicting: true},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := Parse(build(t, withSeed(c.stored)))
			if err == nil {
				err = is.Compare(domain(t, build(t, withSeed(c.live))))
			}
			got := is.Disks["seed"]
			if diff := cmp.Diff(c.want, got.Volume); err != nil || diff != "" || got.Conflicting != c.conflicting {
				t.Errorf("%v, conflicting %t, difference (-want +got):\n%s", err, got.Conflicting, diff)
			}
		})
	}
}

// A medium that the guest already has is not ejected only because the stored definition has another one.
func TestCompare_ReturningMediumIsOnlyStored(t *testing.T) {
	live, want := build(t, withSeed(seed("seed", "g1"))), withSeed(seed("seed", "g1"))
	was, err := Parse(build(t, withSeed(seed("new", "g2"))))
	if err != nil {
		t.Fatal(err)
	}
	if taken := ChangedUses(was, want); !slices.Equal(taken, []string{"seed"}) {
		t.Errorf("it takes %v", taken)
	}
	if lost := domain(t, live).DisksToDetach(want); len(lost) != 0 {
		t.Errorf("it loses %v, %v", lost, err)
	}
	if media := domain(t, live).MediaToInsert(want); len(media) != 0 {
		t.Errorf("it inserts %v, %v", media, err)
	}
}

// The medium of a writable floppy drive changes at the next start: until then the stored one is reported.
func TestCompare_MediumOfWritableDrive(t *testing.T) {
	tray := func(source string) string {
		return strings.Replace(stored(t), "<devices>", "<devices><disk type='file' device='floppy'>"+source+
			"<target dev='fda' bus='fdc'/><alias name='ua-disk-notes'/></disk>", 1)
	}
	is, err := Parse(tray("<source file='/notes.img'/>"))
	if err == nil {
		err = is.Compare(domain(t, tray("")))
	}
	if got := is.Disks["notes"]; err != nil || got.Conflicting || len(got.Volume.Images) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The same applies to a disk that could be plugged in, unless virtclaim has never changed the domain.
func TestCompare_DiskDiffersInGuest(t *testing.T) {
	now, next := running(), running()
	next.Disks["data"] = Disk{Volume: local("other", "g9"), Device: Fixed, Bus: "virtio"}
	for phase, want := range map[string]bool{Ready: true, "": false} {
		is, err := Parse(build(t, next))
		is.Metadata.Phase = phase
		if err == nil {
			err = is.Compare(domain(t, build(t, now)))
		}
		if got := is.Disks["data"]; err != nil || got.Conflicting != want || (len(got.Volume.Images) == 0) != want {
			t.Errorf("phase %q: %+v, %v", phase, got, err)
		}
		if is.Disks["log"].Conflicting {
			t.Error("a disk that is the same is conflicting")
		}
	}
}

// A medium that the guest has booted from changes at its next start: until then the machine shows the stored one.
func TestCompare_BootMedium(t *testing.T) {
	for live, want := range map[string]volume.Volume{
		build(t, bootSeed(seed("seed", "g1"))): seed("new", "g2"),
		build(t, bootSeed(volume.Volume{})):    {},
	} {
		is, err := Parse(build(t, bootSeed(seed("new", "g2"))))
		if err == nil {
			err = is.Compare(domain(t, live))
		}
		if diff := cmp.Diff(want, is.Disks["seed"].Volume); err != nil || diff != "" {
			t.Errorf("%v, difference (-want +got):\n%s", err, diff)
		}
	}
}
