package machine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// refusing is a running host that has no place for another interface.
type refusing struct{ oneDomain }

func (h *refusing) LiveXML(context.Context, string) (string, error) {
	return `<domain type='qemu' id='1'><name>web</name><devices><interface type='network'><mac address='52:54:00:00:00:01'/>` +
		`<source network='red'/><model type='virtio'/><alias name='ua-net-a'/></interface></devices></domain>`, nil
}

func (h *refusing) Attach(context.Context, string, string) error {
	return errors.New("no more PCI slots")
}

func (h *refusing) ChangeInterface(context.Context, string, string) error { return nil }

// Both the running machine and its persistent definition have an interface, or neither does.
func TestInterfaces_RefusedIsNotStored(t *testing.T) {
	red := domainxml.Interface{Network: "red", Model: "virtio", MAC: "52:54:00:00:00:01"}
	was := domainxml.Machine{Name: "web", DomainType: "qemu", Interfaces: map[string]domainxml.Interface{"a": red}}
	want := was
	want.Interfaces = map[string]domainxml.Interface{"a": red, "b": {Network: "blue", Model: "virtio", MAC: "52:54:00:00:00:02"}}
	stored, err := domainxml.Build(want)
	if err != nil {
		t.Fatal(err)
	}
	h := &refusing{oneDomain{stored: stored}}
	l := Manager{log: quiet, host: h}
	live, err := l.readLive(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	now, err := l.ReadStored(t.Context(), "")
	if err == nil {
		_, err = l.attachInterfaces(t.Context(), "", now, live, want)
	}
	err = l.revert(t.Context(), "", was, want, err)
	if err == nil || !strings.Contains(err.Error(), "interface b could not be plugged") {
		t.Error(err)
	}
	left, err := domainxml.Parse(h.stored)
	if keys := slices.Collect(maps.Keys(left.Interfaces)); err != nil || !slices.Equal(keys, []string{"a"}) {
		t.Errorf("left are %v, %v", keys, err)
	}
}
