package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// withProcessor is a host with a processor, on which a guest runs.
type withProcessor struct {
	cpu, missing string
	processor    host.Processor
	err          error
	// asked is what the host was asked about.
	asked host.Hardware
}

func (h *withProcessor) LiveXML(context.Context, string) (string, error) {
	return `<domain type='kvm'><name>web</name><os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>` + h.cpu + `</domain>`, h.err
}

func (h *withProcessor) MissingFeatures(_ context.Context, of host.Hardware, _ string) (string, error) {
	h.asked = of
	return h.missing, h.err
}

func (h *withProcessor) Processor(context.Context) (host.Processor, error) { return h.processor, h.err }

func TestLacking_Processors(t *testing.T) {
	const (
		custom  = "<cpu mode='custom'><model>Skylake-Server</model></cpu>"
		passed  = "<cpu mode='host-passthrough'/>"
		lacks   = "its guest uses features of the processor that host host-b lacks: %s. " + otherCPU
		another = "its guest has all of its host's processor (%s), and host host-b has another one. " + otherCPU
	)
	old, newer := host.Processor{Model: "Skylake-Server"}, host.Processor{Model: "Skylake-Server", Features: []string{"amx-tile"}}
	failure := errors.New("it does not answer")
	for name, c := range map[string]struct {
		cpu      string
		from, to host.Processor
		missing  string
		err      error
		want     string
	}{
		"no element":                {missing: "avx512f"},
		"nothing missing":           {cpu: custom, from: newer, to: old},
		"features missing":          {cpu: custom, missing: "hle, rtm", want: fmt.Sprintf(lacks, "hle, rtm")},
		"many missing":              {cpu: custom, missing: "a, b, c, d, e", want: fmt.Sprintf(lacks, "a, b, c and 2 more")},
		"without a mode":            {cpu: "<cpu><model>Skylake-Server</model></cpu>", missing: "hle", want: fmt.Sprintf(lacks, "hle")},
		"passed through, alike":     {cpu: passed, from: newer, to: newer, missing: "hle"},
		"passed through, unlike":    {cpu: passed, from: newer, to: old, want: fmt.Sprintf(another, "host-passthrough")},
		"maximum, unlike":           {cpu: "<cpu mode='maximum'/>", from: old, to: newer, want: fmt.Sprintf(another, "maximum")},
		"not known":                 {cpu: custom, err: failure},
		"passed through, not known": {cpu: passed, err: failure},
	} {
		t.Run(name, func(t *testing.T) {
			to := &withProcessor{processor: c.to, missing: c.missing, err: c.err}
			why, err := lacking(t.Context(), &withProcessor{cpu: c.cpu, processor: c.from}, to, "host-b", "id")
			if why != c.want || !errors.Is(err, c.err) {
				t.Errorf("want %q and %v, got %q and %v", c.want, c.err, why, err)
			}
			want := host.Hardware{Arch: "x86_64", Type: "pc-q35-7.2", DomainType: "kvm"}
			if to.asked != (host.Hardware{}) && to.asked != want {
				t.Errorf("asked for %v, not %v", to.asked, want)
			}
		})
	}
}
