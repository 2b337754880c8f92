package domainxml

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

var vcpus = part{
	name: "cpu", apply: applyCPU, parse: parseCPU, drift: cpuDrift,
	same: func(live, want Machine) bool {
		return live.VCPUs == want.VCPUs && live.maxVCPUs() == want.maxVCPUs() && live.CPU.mayBe(want.CPU)
	},
}

// CPU is the CPU model and topology of the guest.
type CPU struct {
	// Mode is an element of CPUModes; empty lets libvirt choose.
	Mode string
	// Model is the CPU model for the mode CustomCPU.
	Model string
	// Topology is nil for libvirt's default, one socket per processor.
	Topology *Topology
	// Features are libvirt's policies, such as require, by the names of the processor's features.
	Features map[string]string
	// Pins are the processors of the host, such as 0-3,8, on which those of the guest run, by their numbers.
	Pins map[uint]string
	// EmulatorPin are those on which the threads of QEMU itself run; empty for all.
	EmulatorPin string
	// Shares is the machine's weight, and Quota the time in microseconds that each processor gets in a Period; 0 for the host's default.
	Shares, Period, Quota uint
	// Unknown is true for a running domain that shows a CPU model while the metadata do not record the configured one.
	Unknown bool
}

// Topology arranges the maximum number of processors.
type Topology struct{ Sockets, Dies, Cores, Threads uint }

// VCPUs is the number of processors of the topology.
func (t Topology) VCPUs() uint { return t.Sockets * t.Dies * t.Cores * t.Threads }

// CustomCPU is the mode that names a CPU model.
const CustomCPU = "custom"

// CPUModes are all modes that libvirt has.
var CPUModes = []string{"host-passthrough", "host-model", "maximum", CustomCPU}

// unknownCPU is recorded in the metadata of a running domain that was not started by virtclaim.
const unknownCPU = "unknown"

// note is the configured CPU in one word, its model or its mode, as the metadata record it.
func (c CPU) note() string { return cmp.Or(c.Model, c.Mode) }

// featureNote are the configured features, as the metadata record them.
func (c CPU) featureNote() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Features)) {
		all = append(all, name+"="+c.Features[name])
	}
	return strings.Join(all, " ")
}

// mayBe reports whether a running processor matches want, as far as that is known.
func (c CPU) mayBe(want CPU) bool {
	if !reflect.DeepEqual(c.Topology, want.Topology) || !maps.EqualFunc(c.Pins, want.Pins, SameCPUs) {
		return false
	}
	if c.Unknown {
		return slices.Contains([]string{"", "host-model", CustomCPU}, want.Mode)
	}
	if !SameCPUs(c.EmulatorPin, want.EmulatorPin) || c.Shares != want.Shares || c.Period != want.Period || c.Quota != want.Quota {
		return false
	}
	return c.Mode == want.Mode && c.Model == want.Model && maps.Equal(c.Features, want.Features)
}

func (m Machine) maxVCPUs() uint { return cmp.Or(m.MaxVCPUs, m.VCPUs) }

// applyCPU writes the count, the model and the topology each only if it differs, so that other settings of the processors, such as
// pinning, are kept.
func applyCPU(d *libvirtxml.Domain, m Machine) {
	if now, most := vcpusOf(d); d.VCPU == nil || now != m.VCPUs || most != m.maxVCPUs() {
		if d.VCPU == nil {
			d.VCPU = &libvirtxml.DomainVCPU{}
		}
		d.VCPUs, d.VCPU.Value, d.VCPU.Current = nil, m.maxVCPUs(), 0
		if m.VCPUs < m.maxVCPUs() {
			d.VCPU.Current = m.VCPUs
		}
	}
	metadata, _ := parseMetadata(d)
	is := cpuOf(d, metadata)
	if is.Mode != m.CPU.Mode || is.Model != m.CPU.Model {
		cpu := &libvirtxml.DomainCPU{Mode: m.CPU.Mode}
		if m.CPU.Model != "" {
			cpu.Model = &libvirtxml.DomainCPUModel{Value: m.CPU.Model}
		}
		if d.CPU != nil {
			cpu.Topology, cpu.Numa, cpu.Cache, cpu.MaxPhysAddr = d.CPU.Topology, d.CPU.Numa, d.CPU.Cache, d.CPU.MaxPhysAddr
		}
		d.CPU, is.Features = cpu, nil
	}
	if !maps.Equal(is.Features, m.CPU.Features) {
		applyFeatures(d, m.CPU.Features)
	}
	applyTune(d, is, m.CPU)
	if !reflect.DeepEqual(is.Topology, m.CPU.Topology) {
		applyTopology(d, m.CPU.Topology)
	}
	if d.CPU != nil && reflect.DeepEqual(*d.CPU, libvirtxml.DomainCPU{XMLName: d.CPU.XMLName}) {
		d.CPU = nil
	}
}

// Processor is the element cpu and its mode. In a running domain it lists what the guest has, but for the modes host-passthrough and
// maximum. Both are empty without one.
func (d *Domain) Processor() (element, mode string, err error) {
	if d.xml.CPU == nil {
		return "", "", nil
	}
	element, err = d.xml.CPU.Marshal()
	return element, cmp.Or(d.xml.CPU.Mode, CustomCPU), err
}

func applyFeatures(d *libvirtxml.Domain, features map[string]string) {
	if d.CPU == nil {
		d.CPU = &libvirtxml.DomainCPU{}
	}
	d.CPU.Features = nil
	for _, name := range slices.Sorted(maps.Keys(features)) {
		d.CPU.Features = append(d.CPU.Features, libvirtxml.DomainCPUFeature{Name: name, Policy: features[name]})
	}
}

// applyTune writes what differs.
func applyTune(d *libvirtxml.Domain, is, want CPU) {
	var t libvirtxml.DomainCPUTune
	if d.CPUTune != nil {
		t = *d.CPUTune
	}
	if !maps.EqualFunc(is.Pins, want.Pins, SameCPUs) {
		t.VCPUPin = nil
		for _, n := range slices.Sorted(maps.Keys(want.Pins)) {
			t.VCPUPin = append(t.VCPUPin, libvirtxml.DomainCPUTuneVCPUPin{VCPU: n, CPUSet: want.Pins[n]})
		}
	}
	if !SameCPUs(is.EmulatorPin, want.EmulatorPin) {
		t.EmulatorPin = orNil(libvirtxml.DomainCPUTuneEmulatorPin{CPUSet: want.EmulatorPin})
	}
	if is.Shares != want.Shares {
		t.Shares = orNil(libvirtxml.DomainCPUTuneShares{Value: want.Shares})
	}
	if is.Period != want.Period {
		t.Period = orNil(libvirtxml.DomainCPUTunePeriod{Value: uint64(want.Period)})
	}
	if is.Quota != want.Quota {
		t.Quota = orNil(libvirtxml.DomainCPUTuneQuota{Value: int64(want.Quota)})
	}
	if d.CPUTune = &t; reflect.DeepEqual(t, libvirtxml.DomainCPUTune{}) {
		d.CPUTune = nil
	}
}

func orNil[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// readTune reads what applyTune writes. A negative quota is none.
func (c *CPU) readTune(t *libvirtxml.DomainCPUTune) {
	if t == nil {
		return
	}
	for _, pin := range t.VCPUPin {
		if c.Pins == nil {
			c.Pins = map[uint]string{}
		}
		c.Pins[pin.VCPU] = pin.CPUSet
	}
	if t.EmulatorPin != nil {
		c.EmulatorPin = t.EmulatorPin.CPUSet
	}
	if t.Shares != nil {
		c.Shares = t.Shares.Value
	}
	if t.Period != nil {
		c.Period = uint(t.Period.Value)
	}
	if t.Quota != nil {
		c.Quota = uint(max(t.Quota.Value, 0))
	}
}

func applyTopology(d *libvirtxml.Domain, t *Topology) {
	if d.CPU == nil {
		d.CPU = &libvirtxml.DomainCPU{}
	}
	d.CPU.Topology = nil
	if t != nil {
		d.CPU.Topology = &libvirtxml.DomainCPUTopology{
			Sockets: int(t.Sockets), Dies: int(t.Dies), Cores: int(t.Cores), Threads: int(t.Threads),
		}
	}
}

func parseCPU(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	now, most := vcpusOf(d)
	if m.VCPUs = now; most != now {
		m.MaxVCPUs = most
	}
	m.CPU = cpuOf(d, metadata)
	return nil
}

func vcpusOf(d *libvirtxml.Domain) (now, most uint) {
	if d.VCPU == nil || d.VCPU.Value == 0 {
		return 1, 1 // libvirt's default
	}
	return cmp.Or(d.VCPU.Current, d.VCPU.Value), d.VCPU.Value
}

func cpuOf(d *libvirtxml.Domain, metadata machineMetadata) (is CPU) {
	is.readTune(d.CPUTune)
	c := d.CPU
	if c == nil {
		return is
	}
	is.Features = featuresOf(c, metadata)
	if t := c.Topology; t != nil {
		is.Topology = &Topology{uint(t.Sockets), uint(cmp.Or(t.Dies, 1)) * uint(cmp.Or(t.Clusters, 1)), uint(t.Cores), uint(t.Threads)}
	}
	switch isCustom := c.Mode == "" || c.Mode == CustomCPU; {
	case !isCustom:
		is.Mode = c.Mode
	case c.Model == nil:
	case c.Model.Fallback != "forbid":
		is.Mode, is.Model = CustomCPU, c.Model.Value
	case metadata.Phase == "" || metadata.CPU == unknownCPU:
		// libvirt shows a model that it has chosen by default, or that it has computed from the configured mode.
		is.Unknown = true
	case metadata.CPU == "" || slices.Contains(CPUModes, metadata.CPU):
		is.Mode = metadata.CPU
	default:
		is.Mode, is.Model = CustomCPU, metadata.CPU
	}
	return is
}

// featuresOf are the configured features. libvirt shows all that a running domain has, with a model that it has computed.
func featuresOf(c *libvirtxml.DomainCPU, metadata machineMetadata) map[string]string {
	all := map[string]string{}
	if c.Model != nil && c.Model.Fallback == "forbid" {
		for _, f := range strings.Fields(metadata.CPUFeatures) {
			name, policy, _ := strings.Cut(f, "=")
			all[name] = policy
		}
	} else {
		for _, f := range c.Features {
			all[f.Name] = cmp.Or(f.Policy, "require")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// cpuDrift records processors that were unplugged from a running guest, or pinned elsewhere. More processors than are stored are no
// drift: they may be waiting for the next start, which removes them.
func cpuDrift(stored *Machine, live Machine) {
	if live.VCPUs < stored.VCPUs && stored.VCPUs <= live.maxVCPUs() {
		stored.Drift.VCPUs = live.VCPUs
	}
	for n, pin := range stored.CPU.Pins {
		if n < live.VCPUs && !SameCPUs(live.CPU.Pins[n], pin) {
			stored.Drift.Pins = live.CPU.Pins
		}
	}
}
