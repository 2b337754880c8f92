package domainxml

import (
	"reflect"
	"strings"
	"testing"
)

func TestScale_WithinMaximum(t *testing.T) {
	const balloon = "<memballoon model='virtio'/>"
	for _, c := range []struct {
		name, device  string
		vcpus, memory uint
		want          Scale
	}{
		{"the same", balloon, 2, 131072, Scale{}},
		{"almost the same", balloon, 2, 131072 + 1023, Scale{}},
		{"more", balloon, 4, 262144, Scale{4, 262144}},
		{"less", balloon, 1, 65536, Scale{0, 65536}},
		{"too much", balloon, 5, 262144 + 4096, Scale{}},
		{"no balloon", "<memballoon model='none'/>", 3, 65536, Scale{3, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := strings.Replace(build(t, small()), "<devices>", "<devices>"+c.device, 1)
			want := small()
			want.VCPUs, want.Memory = c.vcpus, c.memory
			want.MaxVCPUs, want.MaxMemory = 8, 1<<20
			if got, err := domain(t, live).DiffScale(want); err != nil || got != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestScale_PendingIsNotDrift(t *testing.T) {
	for _, c := range []struct {
		name          string
		stored, live  Machine
		vcpus, memory uint
	}{
		{"the same", sized(2, 4, 100, 200), sized(2, 4, 100, 200), 0, 0},
		{"taken away", sized(3, 4, 150, 200), sized(2, 4, 100, 200), 2, 100},
		{"given", sized(2, 4, 100, 200), sized(3, 4, 150, 200), 0, 150},
		{"no maximum", sized(2, 0, 100, 0), sized(1, 2, 50, 100), 1, 50},
		{"fewer at the next start", sized(1, 4, 100, 200), sized(2, 4, 100, 200), 0, 0},
		{"more than the maximum at the next start", sized(6, 8, 300, 400), sized(2, 4, 100, 200), 0, 0},
		{"a guest without a balloon", sized(2, 4, 100, 200), sized(2, 4, 200, 200), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := c.stored
			if err := is.Compare(domain(t, build(t, c.live))); err != nil {
				t.Fatal(err)
			}
			if want := (Scale{c.vcpus, c.memory << 10}); is.Drift.Scale != want {
				t.Errorf("%+v, want %+v", is.Drift.Scale, want)
			}
		})
	}
}

func TestCompare_LiveTitleIsDrift(t *testing.T) {
	is, live := small(), small()
	is.Title, live.Title, live.Description = "mine", "", "theirs"
	if err := is.Compare(domain(t, build(t, live))); err != nil {
		t.Fatal(err)
	}
	if d := is.Drift; d.Title == nil || *d.Title != "" || d.Description == nil || *d.Description != "theirs" || is.Title != "mine" {
		t.Errorf("%+v", d)
	}
	if err := live.Compare(domain(t, build(t, live))); err != nil || !reflect.DeepEqual(live.Drift, Drift{}) {
		t.Errorf("the same has drifted: %+v, %v", live.Drift, err)
	}
}

func sized(vcpus, maxVCPUs, memory, maxMemory uint) Machine {
	m := small()
	m.VCPUs, m.MaxVCPUs, m.Memory, m.MaxMemory = vcpus, maxVCPUs, memory<<10, maxMemory<<10
	return m
}
