package domainxml

// Scale is what a running domain has, or can be given, more or less of than is said elsewhere. What is 0 is as said there.
type Scale struct {
	VCPUs uint
	// Memory is in KiB.
	Memory uint
}

// Drift is what somebody has made of a running machine alone. What is 0, or nil, is as stored.
type Drift struct {
	Scale
	Title, Description *string
}

// SizedAs is m with the stored processors and memory of a machine where nobody says how many: a refresh can't tell them after an
// interrupted update, and ignore_changes may keep that.
func (m Machine) SizedAs(is Machine) Machine {
	if m.VCPUs == 0 {
		m.VCPUs, m.MaxVCPUs = is.VCPUs, is.MaxVCPUs
	}
	if m.Memory == 0 {
		m.Memory, m.MaxMemory = is.Memory, is.MaxMemory
	}
	return m
}

// Scales is what makes a running domain have the processors and the memory that want has, as far as its own maximum lets
// it. It never loses processors: guests may not give them up, and QEMU's emulation can't take them.
func Scales(live string, want Machine) (s Scale, err error) {
	d, err := Unmarshal(live)
	if err != nil {
		return s, err
	}
	is, err := Parse(live)
	if err != nil {
		return s, err
	}
	if want.VCPUs > is.VCPUs && want.VCPUs <= is.maxVCPUs() {
		s.VCPUs = want.VCPUs
	}
	balloon := d.Devices.MemBalloon != nil && d.Devices.MemBalloon.Model != "none"
	if balloon && want.Memory <= is.maxMemory() && !near(want.Memory, is.Memory) {
		s.Memory = want.Memory
	}
	return s, nil
}

// HasMemory tells whether a running domain has so many KiB.
func HasMemory(live string, kib uint) (bool, error) {
	is, err := Parse(live)
	return near(is.Memory, kib), err
}
