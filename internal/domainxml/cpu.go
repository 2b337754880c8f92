package domainxml

import (
	"cmp"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

var vcpus = part{
	name: "cpu", apply: applyCPU, parse: parseCPU, drift: cpuDrift,
	same: func(live, want Machine) bool {
		return live.VCPUs == want.VCPUs && live.maxVCPUs() == want.maxVCPUs() && live.CPU.mayBe(want.CPU)
	},
}

// CPU is what the guest's processors are.
type CPU struct {
	// Mode is one of CPUModes; empty lets libvirt choose.
	Mode string
	// Model is that of the mode CustomCPU.
	Model string
	// Topology is nil where libvirt makes a socket of each processor.
	Topology *Topology
	// Unknown tells that a running domain has a model of which nobody has noted what it was asked for as.
	Unknown bool
}

// Topology is how the processors, all that there can be, are arranged.
type Topology struct{ Sockets, Dies, Cores, Threads uint }

// VCPUs is how many processors that is.
func (t Topology) VCPUs() uint { return t.Sockets * t.Dies * t.Cores * t.Threads }

// CustomCPU is the mode that has a model.
const CustomCPU = "custom"

// CPUModes are all of libvirt's.
var CPUModes = []string{"host-passthrough", "host-model", "maximum", CustomCPU}

// unknownCPU is noted in a running domain that was made by hand.
const unknownCPU = "unknown"

// note is the processor as it was asked for, in one word.
func (c CPU) note() string { return cmp.Or(c.Model, c.Mode) }

// mayBe tells whether a running processor is what is wanted, as far as anybody knows.
func (c CPU) mayBe(want CPU) bool {
	if !reflect.DeepEqual(c.Topology, want.Topology) {
		return false
	}
	if c.Unknown {
		return slices.Contains([]string{"", "host-model", CustomCPU}, want.Mode)
	}
	return c.Mode == want.Mode && c.Model == want.Model
}

func (m Machine) maxVCPUs() uint { return cmp.Or(m.MaxVCPUs, m.VCPUs) }

// applyCPU writes the count, the model and the topology each only if it differs, so that what else is said of processors
// stays, such as where they are pinned to.
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
	mark, _ := parseMark(d)
	is := cpuOf(d, mark)
	if is.Mode != m.CPU.Mode || is.Model != m.CPU.Model {
		cpu := &libvirtxml.DomainCPU{Mode: m.CPU.Mode}
		if m.CPU.Model != "" {
			cpu.Model = &libvirtxml.DomainCPUModel{Value: m.CPU.Model}
		}
		if d.CPU != nil {
			cpu.Topology, cpu.Numa = d.CPU.Topology, d.CPU.Numa
		}
		d.CPU = cpu
	}
	if !reflect.DeepEqual(is.Topology, m.CPU.Topology) {
		applyTopology(d, m.CPU.Topology)
	}
	if d.CPU != nil && reflect.DeepEqual(*d.CPU, libvirtxml.DomainCPU{XMLName: d.CPU.XMLName}) {
		d.CPU = nil
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

func parseCPU(d *libvirtxml.Domain, mark machineMark, m *Machine) error {
	now, most := vcpusOf(d)
	if m.VCPUs = now; most != now {
		m.MaxVCPUs = most
	}
	m.CPU = cpuOf(d, mark)
	return nil
}

func vcpusOf(d *libvirtxml.Domain) (now, most uint) {
	if d.VCPU == nil || d.VCPU.Value == 0 {
		return 1, 1 // libvirt's default
	}
	return cmp.Or(d.VCPU.Current, d.VCPU.Value), d.VCPU.Value
}

func cpuOf(d *libvirtxml.Domain, mark machineMark) (is CPU) {
	c := d.CPU
	if c == nil {
		return CPU{}
	}
	if t := c.Topology; t != nil {
		is.Topology = &Topology{uint(t.Sockets), uint(cmp.Or(t.Dies, 1)) * uint(cmp.Or(t.Clusters, 1)), uint(t.Cores), uint(t.Threads)}
	}
	switch isCustom := c.Mode == "" || c.Mode == CustomCPU; {
	case !isCustom:
		is.Mode = c.Mode
	case c.Model == nil:
	case c.Model.Fallback != "forbid":
		is.Mode, is.Model = CustomCPU, c.Model.Value
	case mark.Phase == "" || mark.CPU == unknownCPU:
		// libvirt's own choice of what nobody asked for, or what it has made of what was asked for.
		is.Unknown = true
	case mark.CPU == "" || slices.Contains(CPUModes, mark.CPU):
		is.Mode = mark.CPU
	default:
		is.Mode, is.Model = CustomCPU, mark.CPU
	}
	return is
}

// cpuDrift shows processors that were taken from a running guest: more than are stored may be waiting for their end.
func cpuDrift(stored *Machine, live Machine) {
	if live.VCPUs < stored.VCPUs && stored.VCPUs <= live.maxVCPUs() {
		stored.Drift.VCPUs = live.VCPUs
	}
}
