package virtualmachine

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// newMAC generates an address of QEMU's range.
func newMAC() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", b[0], b[1], b[2])
}

// attachInterfaces plugs the interfaces of want into the running domain.
func (m manager) attachInterfaces(ctx context.Context, uuid string, want domainxml.Machine) error {
	stored, err := m.readStored(ctx, uuid)
	if err != nil {
		return err
	}
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return err
	}
	todo, err := live.DiffInterfaces(want)
	if err != nil {
		return err
	}
	for _, w := range todo.Change {
		tflog.Info(ctx, "Changing an interface", map[string]any{"machine": want.Name, "interface": w.Key})
		if err := m.host.ChangeInterface(ctx, uuid, w.Element); err != nil {
			return fmt.Errorf("interface %s could not be changed in the running machine: %w", w.Key, err)
		}
	}
	for _, key := range todo.Plug {
		device, err := live.PlugInterface(stored, key)
		if err != nil {
			return err
		}
		tflog.Info(ctx, "Plugging an interface in", map[string]any{"machine": want.Name, "interface": key})
		if err := m.host.Attach(ctx, uuid, device); err != nil {
			return fmt.Errorf("interface %s could not be plugged into the running machine: %w", key, err)
		}
		if live, err = m.readLive(ctx, uuid); err != nil {
			return err
		}
	}
	return nil
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
