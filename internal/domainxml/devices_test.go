package domainxml

import (
	"strings"
	"testing"
)

// In a domain of virtclaim's, devices that libvirt adds by default are not read, and are kept. In an unmanaged domain they are read,
// so that they can be adopted or removed.
func TestDevices_OnlyRequestedAreReadAndRemoved(t *testing.T) {
	m := machines()["smallest"]
	m.Metadata.Phase = Ready
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	const added = `<watchdog model="itco" action="reset"></watchdog><video><model type="cirrus" vram="16384" heads="1"></model></video></devices>`
	ours := strings.Replace(text, "</devices>", added, 1)
	byHand := strings.Replace(ours, ` phase="ready"`, "", 1)

	is, err := Parse(ours)
	if err != nil || is.Video != nil || is.Watchdog != nil {
		t.Errorf("read of ours: %+v, %+v, %v", is.Video, is.Watchdog, err)
	}
	after, err := domain(t, ours).Update(m)
	if err != nil || !strings.Contains(after, "cirrus") || !strings.Contains(after, "itco") {
		t.Errorf("what nobody asked for is gone (%v) from\n%s", err, after)
	}
	is, err = Parse(byHand)
	if err != nil || is.Video == nil || *is.Video != (Video{"cirrus", 16384, 1}) || is.Watchdog == nil || is.Watchdog.Model != "itco" {
		t.Errorf("read of one made by hand: %+v, %+v, %v", is.Video, is.Watchdog, err)
	}
	after, err = domain(t, byHand).Update(m)
	if err != nil || strings.Contains(after, "cirrus") || strings.Contains(after, "itco") {
		t.Errorf("what was there and is not wanted stays (%v) in\n%s", err, after)
	}
}

// Each device is removed completely when it is no longer configured.
func TestDevices_RequestedAreRemoved(t *testing.T) {
	with := machines()["devices"]
	text, err := Build(with)
	if err != nil {
		t.Fatal(err)
	}
	without := machines()["smallest"]
	without.Name, without.Type, without.Metadata, without.Serial = with.Name, with.Type, with.Metadata, with.Serial
	after, err := domain(t, text).Update(without)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"<graphics", "<video", "<rng", "<watchdog", "<console", "<filesystem", "<memoryBacking", "<sound", "<input"} {
		if strings.Contains(after, gone) {
			t.Errorf("%s is still in\n%s", gone, after)
		}
	}
	if pending, err := domain(t, text).Pending(without); err != nil || strings.Join(pending, " ") != "graphics video rng watchdog console filesystems devices_xml" {
		t.Errorf("pending are %v, %v", pending, err)
	}
}
