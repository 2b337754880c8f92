package disk

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// A master can't be deleted below its overlays: the plan says so.
func TestDisk_LossOfMasterNamesOverlays(t *testing.T) {
	over := func(name, backing string) host.StorageVolume {
		return host.StorageVolume{Pool: "ssd", Name: name, Backing: backing}
	}
	volumes := []host.StorageVolume{over("other", "/ssd/golden-2"), over("web", "/ssd/golden"), over("db", "/ssd/golden"), {Pool: "ssd", Name: "x", Undescribed: true}}
	for path, want := range map[string]string{"/ssd/golden": `Overlays of it: 2, such as "ssd/web". The apply refuses`, "/ssd/web": ""} {
		if got := refusedForOverlays(volumes, path); !strings.Contains(got, want) || got == "" != (want == "") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
