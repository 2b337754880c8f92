package domainxml

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a machine whose maximum of processors and memory is larger than their number and size.
func small() Machine {
	return Machine{
		Name: "small", VCPUs: 2, MaxVCPUs: 4, Memory: 131072, MaxMemory: 262144, DomainType: "qemu", Disks: map[string]Disk{},
		Metadata: Metadata{Owner: "prod", Phase: Ready},
	}
}

// defined replaces the machine's CPU as libvirt does, live or stored: it fills in defaults and computes the model of a configured
// mode.
func defined(t *testing.T, m Machine, cpu string) string {
	t.Helper()
	m.CPU.Topology = nil
	text := build(t, m)
	if i := strings.Index(text, "  <cpu"); i >= 0 {
		j := i + strings.Index(text[i:], "</cpu>") + len("</cpu>\n")
		text = text[:i] + text[j:]
	}
	return strings.Replace(text, "  <devices>", "  "+cpu+"\n  <devices>", 1)
}

const (
	filledIn  = `<cpu mode='custom' match='exact' check='none'><model fallback='forbid'>qemu64</model></cpu>`
	workedOut = `<cpu mode='custom' match='exact' check='full'><model fallback='forbid'>EPYC</model><feature policy='require' name='vmx'/></cpu>`
)

func TestCPU_DefaultIsNotReported(t *testing.T) {
	byHand := small()
	byHand.Metadata = Metadata{}
	custom, model := small(), small()
	custom.CPU, model.CPU = CPU{Mode: CustomCPU, Model: "EPYC"}, CPU{Mode: "host-model"}
	for _, c := range []struct {
		name, cpu string
		of        Machine
		want      CPU
	}{
		{"filled in", filledIn, small(), CPU{}},
		{"filled in by hand", filledIn, byHand, CPU{Unknown: true}},
		{"asked for by hand", `<cpu mode='host-model' check='partial'/>`, byHand, CPU{Mode: "host-model"}},
		{"model by hand", `<cpu mode='custom'><model fallback='allow'>qemu64</model></cpu>`, byHand, CPU{Mode: CustomCPU, Model: "qemu64"}},
		{"host-model, running", workedOut, model, CPU{Mode: "host-model"}},
		{"custom, running", workedOut, custom, CPU{Mode: CustomCPU, Model: "EPYC"}},
		{"without a topology's dies", `<cpu><topology sockets='4' cores='1' threads='1'/></cpu>`, byHand, CPU{Topology: &Topology{4, 1, 1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(defined(t, c.of, c.cpu))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.CPU); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCPU_ChangeNeedsRestart(t *testing.T) {
	byHand, model := small(), small()
	byHand.Metadata, model.CPU = Metadata{}, CPU{Mode: "host-model"}
	for _, c := range []struct {
		name, live string
		want       CPU
		pending    int
	}{
		{"the same", defined(t, model, workedOut), CPU{Mode: "host-model"}, 0},
		{"another mode", defined(t, model, workedOut), CPU{Mode: "maximum"}, 1},
		{"none any more", defined(t, model, workedOut), CPU{}, 1},
		{"asked for", defined(t, small(), filledIn), CPU{Mode: "host-model"}, 1},
		{"a topology", defined(t, small(), filledIn), CPU{Topology: &Topology{4, 1, 1, 1}}, 1},
		{"adopted", defined(t, byHand, workedOut), CPU{Mode: "host-model"}, 0},
		{"adopted as what it is not", defined(t, byHand, workedOut), CPU{Mode: "maximum"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := small()
			want.CPU = c.want
			if pending, err := domain(t, c.live).Pending(want); err != nil || len(pending) != c.pending {
				t.Errorf("pending is %v, %v", pending, err)
			}
		})
	}
}

func TestCPU_UpdateKeepsUnsupportedElements(t *testing.T) {
	stored := strings.Replace(defined(t, small(), `<cpu mode='host-passthrough'><topology sockets='4' dies='1' cores='1' threads='1'/></cpu>`),
		"<vcpu ", "<vcpu cpuset='0-3' ", 1)
	for _, c := range []struct {
		name string
		to   func(*Machine)
		has  []string
		not  []string
	}{
		{"count", func(m *Machine) { m.VCPUs = 3 }, []string{`cpuset="0-3"`, `current="3"`, "host-passthrough", "topology"}, nil},
		{"all", func(m *Machine) { m.VCPUs = 4 }, []string{`cpuset="0-3"`}, []string{"current="}},
		{"mode", func(m *Machine) { m.CPU.Mode = "host-model" }, []string{`mode="host-model"`, "topology"}, nil},
		{"no mode", func(m *Machine) { m.CPU.Mode = "" }, []string{"<cpu>", "topology"}, []string{"host-passthrough"}},
		{"nothing", func(m *Machine) { m.CPU = CPU{} }, nil, []string{"<cpu>", "topology", "host-passthrough"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parse(stored)
			if err != nil {
				t.Fatal(err)
			}
			c.to(&m)
			text, err := domain(t, stored).Update(m)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.has {
				if !strings.Contains(text, part) {
					t.Errorf("%s is missing in:\n%s", part, text)
				}
			}
			for _, part := range c.not {
				if strings.Contains(text, part) {
					t.Errorf("%s is in:\n%s", part, text)
				}
			}
		})
	}
}

// What a machine gets of the host's processors is another one at its next start, and goes without a trace.
func TestCPU_ShareNeedsRestart(t *testing.T) {
	m := machines()["settings"]
	d := domain(t, build(t, m))
	if pending, err := d.Pending(m); err != nil || len(pending) > 0 {
		t.Fatalf("pending is %v, %v", pending, err)
	}
	for name, change := range map[string]func(*CPU){
		"emulatorpin": func(c *CPU) { c.EmulatorPin = "" }, "shares": func(c *CPU) { c.Shares = 0 },
		"period": func(c *CPU) { c.Period = 0 }, "quota": func(c *CPU) { c.Quota = 0 },
	} {
		m := machines()["settings"]
		change(&m.CPU)
		pending, err := d.Pending(m)
		if err != nil || !slices.Equal(pending, []string{"cpu"}) {
			t.Errorf("%s: pending is %v, %v", name, pending, err)
		}
		text, err := d.Update(m)
		if is, failed := Parse(text); err != nil || failed != nil || strings.Contains(text, "<"+name) || !cmp.Equal(is.CPU, m.CPU) {
			t.Errorf("%s: %v, %v, %+v in\n%s", name, err, failed, is.CPU, text)
		}
	}
	without, err := d.Update(Machine{Name: "settings", VCPUs: 2, Memory: 131072, DomainType: "kvm"})
	if err != nil || strings.Contains(without, "cputune") {
		t.Errorf("%v: something is left:\n%s", err, without)
	}
}
