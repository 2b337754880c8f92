package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
)

// untouched is a host with one domain. All that changes it, or asks for more, is a call of nil.
type untouched struct {
	Host
	text   string
	active bool
}

func (h untouched) LookupByName(context.Context, string) (string, error) { return "1", nil }

func (h untouched) State(context.Context, string) (host.State, error) {
	return host.State{Active: h.active, Responsive: true}, nil
}

func (h untouched) StoredXML(context.Context, string) (string, error) { return h.text, nil }

func (h untouched) LiveXML(context.Context, string) (string, error) { return h.text, nil }

// A domain that a newer provider has changed is not read, changed, continued or destroyed.
func TestVirtualMachine_OfNewerProvider(t *testing.T) {
	was := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc", Disks: map[string]domainxml.Disk{},
		Metadata: domainxml.Metadata{Owner: "prod", Phase: domainxml.Ready},
	}
	text, err := domainxml.Build(was)
	if err != nil {
		t.Fatal(err)
	}
	for _, active := range []bool{true, false} {
		m := Manager{log: quiet, owner: "prod", host: untouched{active: active, text: strings.Replace(text, "libvirt/domain/1", "libvirt/domain/2", 1)}}
		for name, do := range map[string]func() error{
			"read":    func() error { _, _, err := m.Read(t.Context(), "1", active); return err },
			"update":  func() error { _, _, _, err := m.Update(t.Context(), "1", was, Power{On: true}); return err },
			"destroy": func() error { return m.Delete(t.Context(), "1", was, true) },
			"create":  func() error { _, _, err := m.Define(t.Context(), was); return err },
		} {
			if err := do(); !errors.Is(err, newer.Err) || !strings.Contains(err.Error(), "domain web") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
