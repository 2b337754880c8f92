package machine

import (
	"context"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// attach plugs in the devices, and inserts the media, that want has and the running domain does not. It first records them in the running
// domain's metadata: otherwise, after an interruption here, a disk that is recreated under the same name could be mistaken for the old one.
// It also records disks that were attached outside of Terraform.
func (m Manager) attach(ctx context.Context, uuid string, stored, live *domainxml.Domain, was,
	want domainxml.Machine,
) (now *domainxml.Domain, pending []string, err error) {
	if live, err = m.rename(ctx, uuid, live, want); err != nil {
		return nil, nil, err
	}
	keys, media := live.DisksToAttach(want), live.MediaToInsert(want)
	unnoted, err := live.Unnoted(was, want)
	if err != nil {
		return nil, nil, err
	}
	if notes := slices.Concat(keys, media, unnoted); len(notes) > 0 {
		metadata, err := live.LiveMetadata(want, notes)
		if err != nil {
			return nil, nil, err
		}
		if err := m.host.SetLiveMetadata(ctx, uuid, domainxml.Namespace, domainxml.Prefix, metadata); err != nil {
			return nil, nil, err
		}
	}
	if live, err = m.plug(ctx, uuid, "disk", stored, live, keys, (*domainxml.Domain).Plug); err != nil {
		return nil, nil, err
	}
	for _, key := range media {
		if live, err = m.insert(ctx, uuid, live, key, want.Disks[key].Volume); err != nil {
			return nil, nil, fmt.Errorf("disk %s could not be put into its drive in the running machine: %w", key, err)
		}
	}
	if live, err = m.scale(ctx, uuid, live, want); err != nil {
		return nil, nil, err
	}
	if live, err = m.tune(ctx, uuid, live, want); err != nil {
		return nil, nil, err
	}
	if live, err = m.limit(ctx, uuid, live, want); err != nil {
		return nil, nil, err
	}
	m.grow(ctx, uuid, live, want)
	if len(unnoted) > 0 { // they are in the metadata by now
		live, err = m.readLive(ctx, uuid)
	}
	if err != nil {
		return nil, nil, err
	}
	pending, err = live.Pending(want)
	return live, pending, err
}

// plug plugs devices in, which device reads from the stored definition, and returns the running domain after that.
func (m Manager) plug(ctx context.Context, uuid, kind string, stored, live *domainxml.Domain, keys []string,
	device func(live, stored *domainxml.Domain, key string) (string, error),
) (*domainxml.Domain, error) {
	for _, key := range keys {
		text, err := device(live, stored, key)
		if err != nil {
			return nil, err
		}
		m.log.Info(ctx, "Plugging a device in", map[string]any{"domain": uuid, kind: key})
		if err := m.host.Attach(ctx, uuid, text); err != nil {
			return nil, fmt.Errorf("%s %s could not be plugged into the running machine: %w", kind, key, err)
		}
		if live, err = m.readLive(ctx, uuid); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// insert inserts a medium into an empty drive and returns the running domain after that.
func (m Manager) insert(ctx context.Context, uuid string, live *domainxml.Domain, key string,
	medium volume.Volume,
) (*domainxml.Domain, error) {
	drive, _, err := live.Drive(key, medium)
	if err != nil {
		return nil, err
	}
	m.log.Info(ctx, "Inserting a medium", map[string]any{"domain": uuid, "disk": key})
	if err := m.host.ChangeMedium(ctx, uuid, drive); err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}

// grow announces grown storage to the guest. Local disks in files are grown by their own resource. Storage that is smaller than its claim's
// capacity is no error: the guest keeps the present size.
func (m Manager) grow(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) {
	for target, bytes := range live.DisksToGrow(want) {
		if err := m.host.GrowDevice(ctx, uuid, target, bytes); err != nil {
			m.log.Warn(ctx, "The guest was not told of grown storage",
				map[string]any{"machine": want.Name, "disk": target, "error": err.Error()})
		}
	}
}

// attachInterfaces changes, and plugs in, interfaces of want in the running domain, and returns it after that.
func (m Manager) attachInterfaces(ctx context.Context, uuid string, stored, live *domainxml.Domain,
	want domainxml.Machine,
) (*domainxml.Domain, error) {
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
