//go:build acc

package disk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// uploadScenario is a scenario whose content is uploaded to the host.
type uploadScenario struct {
	scenario
	// before is set if connections are cut before calls, too, and not only after them.
	before bool
	// offsets are the offsets in the body, in bytes, at which the upload breaks off.
	offsets []int64
}

func (s uploadScenario) faults() []lab.Fault {
	// The effect of a cut before a call is much the same in all scenarios.
	all := slices.DeleteFunc(acctest.Points(s.calls, acctest.CutsAndKills), func(f lab.Fault) bool { return !f.After && !s.before })
	for _, offset := range s.offsets {
		all = append(all, inBody(offset, false), inBody(offset, true))
	}
	if len(s.offsets) > 0 { // the header is one packet
		all = append(all, lab.Fault{Call: lab.CallVolumeUpload, Nth: 2, AtByte: 1}, lab.Fault{Call: lab.CallVolumeUpload, Nth: 2, AtByte: 1, Kill: true})
	}
	return all
}

// inBody breaks an upload off in the middle of its data.
func inBody(offset int64, kill bool) lab.Fault {
	return lab.Fault{Call: lab.CallVolumeUpload, Nth: 1, AtByte: offset, Kill: kill}
}

// uploadScenarios are of small images, so that many can be tried.
func uploadScenarios(t *testing.T, l *lab.Lab) []uploadScenario {
	t.Helper()
	raw, sized := smallImage(), make([]byte, 2<<20)
	copy(sized, raw)
	_, pushed := pushed(t, l, "disks/faults", qcow2Of(t, raw))
	web := acctest.Must(l.Web(t.Context()))(t)
	page := acctest.Must(web.AddContent("image.raw", raw))(t)
	acctest.Undo(t, func(context.Context) error { return web.RemoveFile(page) })

	container := disk("root", containerImage(pushed.Reference))
	seed := func(user string) string {
		return disk("root", fmt.Sprintf("source = { cloud_init = { user_data = %q } }", "#cloud-config\nhostname: "+user+"\n"))
	}
	has := func(raw []byte) func(*testing.T) {
		return func(t *testing.T) { t.Helper(); sameImage(t, file(l, "root"), raw) }
	}
	offsets := []int64{1, 64 << 10, 512 << 10, 1 << 20}
	return []uploadScenario{
		{scenario{
			"create a disk of a URL", "",
			disk("root", fmt.Sprintf("size = \"2Mi\"\n  source = { url = { url = %q } }", page.URL("http", web.HTTP))),
			map[lab.Call]int{
				lab.CallCreateXML: 1, lab.CallDefine: 1, lab.CallVolumeCreate: 1, lab.CallVolumeUpload: 2, lab.CallVolumeResize: 1,
				lab.CallVolumeDownload: 1,
			},
			has(sized), "",
		}, true, offsets},
		{scenario{
			// The host's mutex twice; the definitions of two journals, of which that of the shared image is the second.
			"create a disk of a container image", "", container,
			map[lab.Call]int{
				lab.CallCreateXML: 2, lab.CallDefine: 2, lab.CallVolumeCreate: 2, lab.CallVolumeUpload: 2, lab.CallVolumeDownload: 1,
				lab.CallUndefine: 1, lab.CallDestroy: 2,
			},
			has(raw), "",
		}, false, offsets},
		{scenario{
			"destroy a disk of a container image", container, "\n",
			map[lab.Call]int{lab.CallCreateXML: 1, lab.CallVolumeDelete: 2, lab.CallDestroy: 1},
			nil, container, // the shared image may stay until the next disk of its pool is destroyed
		}, false, nil},
		{scenario{
			"create a seed", "", seed("first"),
			map[lab.Call]int{lab.CallVolumeCreate: 1, lab.CallVolumeUpload: 2},
			seeded(l, "first"), "",
		}, false, nil},
		{scenario{
			"replace a seed", seed("first"), seed("second"),
			map[lab.Call]int{
				lab.CallVolumeDelete: 1, lab.CallCreateXML: 1, lab.CallDefine: 1, lab.CallVolumeCreate: 1,
				lab.CallVolumeUpload: 2, lab.CallVolumeDownload: 1,
			},
			seeded(l, "second"), "",
		}, false, nil},
	}
}

// seeded looks for the user data of a seed.
func seeded(l *lab.Lab, user string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		acctest.Contains(t, read(t, file(l, "root")), "CD001", "hostname: "+user)
	}
}

// After an interruption of an upload at any point until the disk is finished (TestAccDisk_KilledWhenFinished), one more apply completes the content, and in the end nothing is left.
func TestAccDisk_UploadFaultInjection(t *testing.T) {
	for _, s := range uploadScenarios(t, acctest.Lab(t)) {
		for _, f := range s.faults() {
			t.Run(s.name+"/"+f.String(), func(t *testing.T) { interrupt(t, s.scenario, f) })
		}
	}
}
