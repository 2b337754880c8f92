package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// scale sets the processors and the memory of the running domain to those of want, up to the running domain's maximum, and returns it
// after that.
func (m manager) scale(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	s, err := live.DiffScale(want)
	if err != nil || s == (domainxml.Scale{}) {
		return live, err
	}
	tflog.Info(ctx, "Scaling the running machine", map[string]any{"machine": want.Name, "vcpus": s.VCPUs, "KiB": s.Memory})
	if s.VCPUs != 0 {
		err = m.host.SetVCPUs(ctx, uuid, s.VCPUs)
	}
	if err == nil && s.Memory != 0 {
		err = m.host.SetMemory(ctx, uuid, s.Memory, func(live string) (bool, error) { return domainxml.HasMemory(live, s.Memory) })
	}
	if err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}

// ignoreChangingMemory removes the memory from drift if the guest's balloon is still changing, as it does when the guest boots.
func (m manager) ignoreChangingMemory(ctx context.Context, uuid string, drift *domainxml.Drift) error {
	if drift.Memory == 0 {
		return nil
	}
	changes, err := m.host.MemoryChanges(ctx, uuid, func(live string) (bool, error) {
		same, err := domainxml.HasMemory(live, drift.Memory)
		return !same && err == nil, err
	})
	if changes {
		drift.Memory = 0
	}
	return err
}

// scaled is the size that a refresh shows: said is the one in state, stored the one in the persistent definition, and drift the running
// machine's, which is 0 if it equals stored. It is the running one if stored equals said. Otherwise an update was interrupted, or the
// definition was changed outside of Terraform: then the size is unknown, so that any plan updates both.
func (m model) scaled(said, stored, drift uint) (now uint, known bool) {
	switch {
	case drift == 0 || m.isImport():
		return stored, true
	case said == stored:
		return drift, true
	}
	return 0, false
}
