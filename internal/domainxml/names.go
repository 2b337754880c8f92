package domainxml

import "libvirt.org/go/libvirtxml"

var title = part{
	name:  "title",
	apply: func(d *libvirtxml.Domain, m Machine) { d.Title = m.Title },
	parse: func(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
		m.Title = d.Title
		return nil
	},
	same: func(live, want Machine) bool { return live.Title == want.Title },
	drift: func(stored *Machine, live Machine) {
		if live.Title != stored.Title {
			stored.Drift.Title = &live.Title
		}
	},
}

var description = part{
	name:  "description",
	apply: func(d *libvirtxml.Domain, m Machine) { d.Description = m.Description },
	parse: func(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
		m.Description = d.Description
		return nil
	},
	same: func(live, want Machine) bool { return live.Description == want.Description },
	drift: func(stored *Machine, live Machine) {
		if live.Description != stored.Description {
			stored.Drift.Description = &live.Description
		}
	},
}
