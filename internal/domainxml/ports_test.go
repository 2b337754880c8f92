package domainxml

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
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

// What is unplugged before frees its port, and SCSI disks share that of their controller.
func TestCheckPorts(t *testing.T) {
	disk := func(bus, file string) Disk {
		return Disk{Device: Fixed, Bus: bus, Volume: volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: file}}}}
	}
	lan := Interface{User: true, Model: "virtio", MAC: firstMAC}
	ports := uint(1)
	is := small()
	is.Type, is.HotplugPorts = "q35", &ports
	is.Disks = map[string]Disk{"a": disk("virtio", "/a")}
	is.Interfaces = map[string]Interface{"lan": lan}
	for name, c := range map[string]struct {
		kind       string
		disks      map[string]Disk
		interfaces []string
		refused    bool
	}{
		"the same":                     {"q35", is.Disks, nil, false},
		"one more":                     {"q35", map[string]Disk{"a": is.Disks["a"], "b": disk("virtio", "/b")}, nil, false},
		"two more":                     {"q35", map[string]Disk{"a": is.Disks["a"], "b": disk("virtio", "/b"), "c": disk("virtio", "/c")}, nil, true},
		"two more, one less":           {"q35", map[string]Disk{"b": disk("virtio", "/b"), "c": disk("virtio", "/c")}, nil, false},
		"two more SCSI disks":          {"q35", map[string]Disk{"a": is.Disks["a"], "b": disk("scsi", "/b"), "c": disk("scsi", "/c")}, nil, false},
		"a drive and a disk":           {"q35", map[string]Disk{"a": is.Disks["a"], "b": disk("virtio", "/b"), "cd": {Device: CDROM, Bus: "sata"}}, nil, false},
		"an interface":                 {"q35", is.Disks, []string{"virtio"}, false},
		"two interfaces":               {"q35", is.Disks, []string{"virtio", "e1000e"}, true},
		"two interfaces, one less":     {"q35", nil, []string{"virtio", "virtio"}, false},
		"two interfaces, one on PCI":   {"q35", is.Disks, []string{"virtio", "e1000"}, false},
		"two interfaces, not on a q35": {"pc", is.Disks, []string{"virtio", "virtio"}, false},
	} {
		is.Type = c.kind
		live, want := domain(t, build(t, is)), is
		want.Disks, want.Interfaces = c.disks, map[string]Interface{"lan": lan}
		for n, model := range c.interfaces {
			want.Interfaces[strconv.Itoa(n)] = Interface{User: true, Model: model}
		}
		if err := live.CheckPorts(want); errors.Is(err, ErrNoPort) != c.refused || err != nil && !strings.Contains(err.Error(), "has 1, and gets 2 more") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
