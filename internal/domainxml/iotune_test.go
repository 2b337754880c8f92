package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func limitedTo(n uint64) Machine {
	return one(Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio", Tuning: Tuning{IOTune: IOTune{0: n}}})
}

// Limits are changed live, so that those that a guest has are what counts: they are drift, and wait for no start.
func TestIOTune_LiveIsDrift(t *testing.T) {
	for name, c := range map[string]struct{ stored, live uint64 }{"the same": {5, 5}, "other": {5, 6}, "none": {5, 0}, "new": {0, 6}} {
		is, err := Parse(build(t, limitedTo(c.stored)))
		live := domain(t, build(t, limitedTo(c.live)))
		if err == nil {
			err = is.Compare(live)
		}
		if got := is.Disks["data"]; err != nil || got.IOTune[0] != c.live || len(got.Volume.Images) == 0 || len(is.Pending) > 0 {
			t.Errorf("%s: %+v, pending %v, %v", name, got, is.Pending, err)
		}
		keys, targets := live.DisksToLimit(limitedTo(c.stored))
		if want := map[bool]string{true: "", false: "vda"}[c.stored == c.live]; targets["data"] != want || len(keys) != len(targets) {
			t.Errorf("%s: to be limited are %v at %v", name, keys, targets)
		}
	}
}

// What can't be limited yet is no reason for a call: another volume, and a medium.
func TestIOTune_OfAnotherVolume(t *testing.T) {
	live := domain(t, build(t, limitedTo(5)))
	other, medium := limitedTo(6), limitedTo(6)
	other.Disks["data"] = Disk{Volume: local("other", "g1"), Device: Fixed, Bus: "virtio", Tuning: Tuning{IOTune: IOTune{0: 6}}}
	medium.Disks["data"] = Disk{Volume: seed("seed", "g1"), Device: CDROM, Bus: "sata", Tuning: Tuning{IOTune: IOTune{0: 6}}}
	for name, want := range map[string]Machine{"another volume": other, "a medium": medium, "nothing": running()} {
		if keys, _ := live.DisksToLimit(want); len(keys) > 0 {
			t.Errorf("%s: to be limited are %v", name, keys)
		}
	}
}

// The group that shares limits is not configured here, and stays.
func TestIOTune_KeepsGroup(t *testing.T) {
	const group = "<group_name>all</group_name>"
	grouped := strings.Replace(build(t, limitedTo(5)), "</iotune>", group+"</iotune>", 1)
	for _, n := range []uint64{6, 0} {
		after, err := domain(t, grouped).Update(limitedTo(n))
		if err != nil || !strings.Contains(after, group) {
			t.Errorf("%d: %v\n%s", n, err, after)
		}
		is, err := Parse(after)
		if diff := cmp.Diff(limitedTo(n).Disks, is.Disks, anyTarget); err != nil || diff != "" {
			t.Errorf("%d: %v, difference (-want +got):\n%s", n, err, diff)
		}
	}
}

// libvirt shows the default length of bursts in a running domain from which another one was taken out.
func TestIOTune_DefaultLengthIsNoDrift(t *testing.T) {
	with := func(length uint64) Machine {
		m := limitedTo(5)
		disk := m.Disks["data"]
		disk.IOTune[6], disk.IOTune[12] = 6, length
		m.Disks["data"] = disk
		return m
	}
	for length, drifts := range map[uint64]bool{0: false, 1: false, 2: true} {
		is, err := Parse(build(t, with(0)))
		live := domain(t, build(t, with(length)))
		if err == nil {
			err = is.Compare(live)
		}
		pending, failed := live.Pending(with(0))
		keys, _ := live.DisksToLimit(with(0))
		got := []bool{is.Disks["data"].IOTune[12] != 0, len(pending) > 0, len(keys) > 0}
		if want := []bool{drifts, drifts, drifts}; err != nil || failed != nil || !cmp.Equal(got, want) {
			t.Errorf("%d: drift, pending, limited are %v: %v, %v", length, got, err, failed)
		}
	}
}
