package domainxml

import (
	"cmp"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Watchdog acts when the guest has not reset it in time.
type Watchdog struct {
	Model string
	// Action is what libvirt does then, such as reset.
	Action string
}

var watchdog = part{
	name: "watchdog", single: true, apply: applyWatchdog, parse: parseWatchdog,
	settings: []setting{{"watchdog", func(m Machine) bool { return m.Watchdog != nil }}},
	same: func(live, want Machine) bool {
		l, w := live.Watchdog, want.Watchdog
		if l == nil || w == nil {
			return l == w || w == nil && live.isUnmanaged()
		}
		return *l == *w
	},
}

// builtIn is the model that is part of q35: newer versions of libvirt list it by default, beside a configured one.
const builtIn = "itco"

// watchdogOf returns the index of the watchdog, preferably of one that is not the built-in model; -1 when there is none.
func watchdogOf(d *libvirtxml.Domain) int {
	n := slices.IndexFunc(d.Devices.Watchdogs, func(w libvirtxml.DomainWatchdog) bool { return w.Model != builtIn })
	if n < 0 && len(d.Devices.Watchdogs) > 0 {
		return 0
	}
	return n
}

func applyWatchdog(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseWatchdog(d, metadataOf(d), &now)
	n := watchdogOf(d)
	switch want := m.Watchdog; {
	case want == nil && now.Watchdog == nil, want != nil && now.Watchdog != nil && *want == *now.Watchdog:
	case want == nil:
		d.Devices.Watchdogs = slices.Delete(d.Devices.Watchdogs, n, n+1)
	case n >= 0 && d.Devices.Watchdogs[n].Model == want.Model:
		d.Devices.Watchdogs[n].Action = want.Action
	default:
		if n >= 0 && d.Devices.Watchdogs[n].Model != builtIn {
			d.Devices.Watchdogs = slices.Delete(d.Devices.Watchdogs, n, n+1)
		}
		d.Devices.Watchdogs = append(d.Devices.Watchdogs, libvirtxml.DomainWatchdog{Model: want.Model, Action: want.Action})
	}
}

func parseWatchdog(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if n := watchdogOf(d); n >= 0 && metadata.wasConfigured("watchdog") {
		w := d.Devices.Watchdogs[n]
		m.Watchdog = &Watchdog{Model: w.Model, Action: cmp.Or(w.Action, "reset")}
	}
	return nil
}
