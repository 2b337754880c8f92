package domainxml

// Scale is the number of processors and the memory to set in a running domain, or in which it differs from the stored definition; 0 is
// unchanged.
type Scale struct {
	VCPUs uint
	// Memory is in KiB.
	Memory uint
}

// Drift are changes of a running machine that the stored definition does not have; 0 or nil is unchanged.
type Drift struct {
	// Pins are those of the processors.
	Pins map[uint]string
	Scale
	Title, Description *string
}

// SizedAs returns m with the stored processors and memory where m has none: a refresh can't determine them after an interrupted
// update, and ignore_changes may keep that state.
func (m Machine) SizedAs(is Machine) Machine {
	if m.VCPUs == 0 {
		m.VCPUs, m.MaxVCPUs = is.VCPUs, is.MaxVCPUs
	}
	if m.Memory == 0 {
		m.Memory, m.MaxMemory = is.Memory, is.MaxMemory
	}
	return m
}

// DiffScale returns the changes that give a running domain the processors and memory of want, up to the domain's maximum. Processors are
// never unplugged: guests may not release them, and QEMU's emulation can't unplug them.
func (d *Domain) DiffScale(want Machine) (s Scale, err error) {
	is, err := d.Machine()
	if err != nil {
		return s, err
	}
	if want.VCPUs > is.VCPUs && want.VCPUs <= is.maxVCPUs() {
		s.VCPUs = want.VCPUs
	}
	balloon := d.xml.Devices.MemBalloon != nil && d.xml.Devices.MemBalloon.Model != "none"
	if balloon && want.Memory <= is.maxMemory() && !near(want.Memory, is.Memory) {
		s.Memory = want.Memory
	}
	return s, nil
}

// HasMemory reports whether a running domain has that much memory, in KiB.
func HasMemory(live string, kib uint) (bool, error) {
	is, err := Parse(live)
	return near(is.Memory, kib), err
}
