package domainxml

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Clock is what a guest's clocks show, and which timers it has.
type Clock struct {
	// Offset is an offset of libvirt's, such as utc or localtime; TimeZone names that of the offset timezone.
	Offset, TimeZone string
	// Timers are keyed by libvirt's names, such as hpet.
	Timers map[string]Timer
}

// Timer is one of the timers of a guest.
type Timer struct {
	// Present and TickPolicy are libvirt's values; empty for its defaults.
	Present, TickPolicy string
}

// Offsets are those that a Clock has; one with another offset is left as it is.
var Offsets = []string{utc, "localtime", "timezone"}

// utc is the default offset.
const utc = "utc"

var clock = part{
	name: "clock", apply: applyClock, parse: parseClock,
	same: func(live, want Machine) bool { return reflect.DeepEqual(live.Clock, want.Clock) },
}

// applyClock keeps what a Timer does not have of timers that stay.
func applyClock(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseClock(d, machineMetadata{}, &now) // never an error
	if reflect.DeepEqual(now.Clock, m.Clock) {
		return
	}
	var before []libvirtxml.DomainTimer
	if d.Clock != nil {
		before = d.Clock.Timer
	}
	want := Clock{}
	if m.Clock != nil {
		want = *m.Clock
	}
	if offset := cmp.Or(want.Offset, utc); d.Clock == nil || d.Clock.Offset != offset {
		d.Clock = &libvirtxml.DomainClock{Offset: offset}
	}
	d.Clock.TimeZone, d.Clock.Timer = want.TimeZone, nil
	for _, t := range before {
		if to, stays := want.Timers[t.Name]; stays {
			t.Present, t.TickPolicy = to.Present, to.TickPolicy
			d.Clock.Timer = append(d.Clock.Timer, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.Timers)) {
		if !slices.ContainsFunc(before, func(t libvirtxml.DomainTimer) bool { return t.Name == name }) {
			to := want.Timers[name]
			d.Clock.Timer = append(d.Clock.Timer, libvirtxml.DomainTimer{Name: name, Present: to.Present, TickPolicy: to.TickPolicy})
		}
	}
}

func parseClock(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	if d.Clock == nil {
		return nil
	}
	offset := cmp.Or(d.Clock.Offset, utc)
	if !slices.Contains(Offsets, offset) || offset == utc && len(d.Clock.Timer) == 0 {
		return nil
	}
	m.Clock = &Clock{Offset: offset, TimeZone: d.Clock.TimeZone}
	for _, t := range d.Clock.Timer {
		if m.Clock.Timers == nil {
			m.Clock.Timers = map[string]Timer{}
		}
		m.Clock.Timers[t.Name] = Timer{t.Present, t.TickPolicy}
	}
	return nil
}
