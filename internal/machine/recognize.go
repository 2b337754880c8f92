package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// inspect is content.Inspect for each image of a chain, once in an operation.
func (m Manager) inspect(ctx context.Context, chain []volume.Image) (all []*content.Seen, err error) {
	for _, i := range chain {
		s, known := m.seen[i.Name]
		if !known {
			if s, err = content.Inspect(ctx, m.host, i); err != nil {
				return nil, err
			}
			if m.seen != nil {
				m.seen[i.Name] = s
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// notInspected is the error of a disk that its host did not show: nothing is known of it then.
func notInspected(key string, err error) error {
	return fmt.Errorf("what disk %s is now could not be read from its host: %w", key, err)
}

// afresh is the manager of an operation that has waited for long, and inspects everything again.
func (m Manager) afresh() Manager {
	h, is := m.host.(located)
	if is {
		m.host = h.Host
	}
	m.host = locate(m.host)
	m.seen = map[string]*content.Seen{}
	return m
}

// recognize refuses local images that are not the configured ones: another file may have the path by now, or an overlay may have another
// backing file.
func (m Manager) recognize(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		chain := want.Disks[key].Volume.Images
		seen, err := m.inspect(ctx, chain)
		if err != nil {
			return notInspected(key, err)
		}
		if err := content.RecognizeChain(ctx, m.host, chain, seen); err != nil {
			return fmt.Errorf("disk %s can't be given to the machine (terraform plan says what became of the disk): %w", key, err)
		}
	}
	return nil
}

// checkBacking refuses to define chains that contradict the headers of their overlays, except for images that the running domain has open:
// its XML shows their chains. It is called before anything changes.
func (m Manager) checkBacking(ctx context.Context, live *domainxml.Domain, want domainxml.Machine) error {
	open := map[string]bool{}
	if live != nil {
		for _, a := range live.Attached() {
			open[topOf(a.Volume).Name] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		chain := want.Disks[key].Volume.Images
		if open[topOf(want.Disks[key].Volume).Name] {
			continue
		}
		seen, err := m.inspect(ctx, chain)
		if err != nil {
			return notInspected(key, err)
		}
		if err := content.CheckBacking(chain, seen); err != nil {
			return fmt.Errorf("%w: disk %s: %w", errExternal, key, err)
		}
	}
	return nil
}

// engrave writes the identity of imported disks, which only the host's ledger has, into their headers. No other machine has them open now.
func (m Manager) engrave(ctx context.Context, opened content.Opened, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		top := topOf(want.Disks[key].Volume)
		if top.AccessMode != volume.WriteExclusive || !top.IsDisk() {
			continue
		}
		seen, err := m.inspect(ctx, []volume.Image{top})
		if err == nil {
			err = content.Engrave(ctx, m.host, opened, seen[0], top)
		}
		if err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}
