package domainxml

import "libvirt.org/go/libvirtxml"

var (
	title = text("title",
		func(d *libvirtxml.Domain) *string { return &d.Title }, func(m *Machine) *string { return &m.Title },
		func(d *Drift) **string { return &d.Title })
	description = text("description",
		func(d *libvirtxml.Domain) *string { return &d.Description }, func(m *Machine) *string { return &m.Description },
		func(d *Drift) **string { return &d.Description })
)

// text is an attribute that a domain has as it is configured.
func text(name string, of func(*libvirtxml.Domain) *string, in func(*Machine) *string, drift func(*Drift) **string) part {
	return part{
		name:  name,
		apply: func(d *libvirtxml.Domain, m Machine) { *of(d) = *in(&m) },
		parse: func(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
			*in(m) = *of(d)
			return nil
		},
		same: func(live, want Machine) bool { return *in(&live) == *in(&want) },
		drift: func(stored *Machine, live Machine) {
			if *in(&live) != *in(stored) {
				*drift(&stored.Drift) = in(&live)
			}
		},
	}
}
