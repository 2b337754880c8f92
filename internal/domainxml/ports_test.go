package domainxml

import (
	"strings"
	"testing"
)

func TestPorts_OnlyFreeOnesAreRemoved(t *testing.T) {
	q35 := small()
	q35.Type = "q35"
	asked := func(n uint) Machine {
		m := q35
		m.HotplugPorts = &n
		return m
	}
	// A device has its address on the last port.
	taken := func(text string) string {
		return strings.Replace(text, "</devices>", `<memballoon model="virtio"><address type="pci" domain="0x0000" bus="0x0c" slot="0x00" function="0x0"/></memballoon></devices>`, 1)
	}
	for _, c := range []struct {
		name    string
		from    string
		to      Machine
		ports   int
		pending bool
	}{
		{"none said", build(t, q35), q35, 12, false},
		{"as many as there are", build(t, q35), asked(12), 12, false},
		{"more", build(t, q35), asked(20), 20, true},
		{"more than before", build(t, asked(3)), asked(5), 5, true},
		{"fewer", build(t, q35), asked(2), 2, false},
		{"fewer, one taken", taken(build(t, q35)), asked(2), 2, false},
		{"none, one taken", taken(build(t, q35)), asked(0), 1, false},
		{"not said any more", build(t, asked(3)), q35, 3, false},
		{"not a q35", build(t, small()), asked(3), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := domain(t, c.from).Update(c.to)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(text, rootPort); got != c.ports {
				t.Errorf("%d ports, not %d, in:\n%s", got, c.ports, text)
			}
			if strings.Contains(c.from, `bus="0x0c"`) && !strings.Contains(text, `index="12"`) {
				t.Errorf("the port that is taken is gone from:\n%s", text)
			}
			if pending, err := domain(t, c.from).Pending(c.to); err != nil || (len(pending) > 0) != c.pending {
				t.Errorf("pending is %v, %v", pending, err)
			}
		})
	}
}
