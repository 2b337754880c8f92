package virtualmachine

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// newMAC generates an address of QEMU's range.
func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", b[0], b[1], b[2])
}

// attachInterfaces changes, and plugs in, interfaces of want in the running domain, and returns it after that.
func (m manager) attachInterfaces(ctx context.Context, uuid string, stored, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	todo, err := live.DiffInterfaces(want)
	if err != nil {
		return nil, err
	}
	for _, w := range todo.Change {
		m.log.Info(ctx, "Changing an interface", map[string]any{"machine": want.Name, "interface": w.Key})
		if err := m.host.ChangeInterface(ctx, uuid, w.Element); err != nil {
			return nil, fmt.Errorf("interface %s could not be changed in the running machine: %w", w.Key, err)
		}
	}
	if len(todo.Change) > 0 {
		if live, err = m.readLive(ctx, uuid); err != nil {
			return nil, err
		}
	}
	return m.plug(ctx, uuid, "interface", stored, live, todo.Plug, (*domainxml.Domain).PlugInterface)
}

// withPluggedInterfaces is want with the interfaces of was where the running domain does not have the wanted ones yet, according to todo.
func withPluggedInterfaces(was, want domainxml.Machine, todo domainxml.InterfaceDiff) domainxml.Machine {
	want.Interfaces = maps.Clone(want.Interfaces)
	for _, w := range todo.Change {
		before, had := was.Interfaces[w.Key]
		if want.Interfaces[w.Key] = before; !had {
			delete(want.Interfaces, w.Key)
		}
	}
	for _, key := range todo.Plug {
		delete(want.Interfaces, key)
	}
	return want
}
