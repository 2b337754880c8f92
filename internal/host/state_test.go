package host

import (
	"testing"

	"github.com/digitalocean/go-libvirt"
)

// A guest that a user has to resume is not responsive; one that is paused temporarily is. The reason is libvirt's.
func TestState_ReasonTellsWhoMustAct(t *testing.T) {
	for text, c := range map[string]struct {
		state      libvirt.DomainState
		reason     int
		responsive bool
	}{
		"running":                    {libvirt.DomainRunning, 5, true},
		"paused":                     {libvirt.DomainPaused, int(libvirt.DomainPausedUnknown), false},
		"paused (user)":              {libvirt.DomainPaused, int(libvirt.DomainPausedUser), false},
		"paused (I/O error)":         {libvirt.DomainPaused, int(libvirt.DomainPausedIoerror), false},
		"paused (crashed)":           {libvirt.DomainPaused, int(libvirt.DomainPausedCrashed), false},
		"paused (shutting down)":     {libvirt.DomainPaused, int(libvirt.DomainPausedShuttingDown), true},
		"paused (creating snapshot)": {libvirt.DomainPaused, int(libvirt.DomainPausedSnapshot), true},
		"crashed (panicked)":         {libvirt.DomainCrashed, int(libvirt.DomainCrashedPanicked), false},
		"pmsuspended":                {libvirt.DomainPmsuspended, 0, false},
		"shut off (crashed)":         {libvirt.DomainShutoff, int(libvirt.DomainShutoffCrashed), false},
	} {
		is := StateOf(int32(c.state), int32(c.reason))
		if is.Describe() != text || is.Responsive != c.responsive || is.Active != (c.state != libvirt.DomainShutoff) {
			t.Errorf("%s: it is %s, %+v", text, is.Describe(), is)
		}
	}
}
