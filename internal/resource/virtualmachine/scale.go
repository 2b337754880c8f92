package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// scale gives the running domain the processors and the memory that want has, as far as its own maximum allows, and gives
// the live XML after that.
func (l life) scale(ctx context.Context, uuid, live string, want domainxml.Machine) (string, error) {
	s, err := domainxml.Scales(live, want)
	if err != nil || s == (domainxml.Scale{}) {
		return live, err
	}
	tflog.Info(ctx, "Scaling the running machine", map[string]any{"machine": want.Name, "vcpus": s.VCPUs, "KiB": s.Memory})
	if s.VCPUs != 0 {
		err = l.host.SetVCPUs(ctx, uuid, s.VCPUs)
	}
	if err == nil && s.Memory != 0 {
		err = l.host.SetMemory(ctx, uuid, s.Memory, func(live string) (bool, error) { return domainxml.HasMemory(live, s.Memory) })
	}
	if err != nil {
		return "", err
	}
	return l.host.LiveXML(ctx, uuid)
}

// scaled is what a refresh shows of a size that the state has as said, the stored definition as stored, and the running machine
// as drift, which is 0 where that is the same: what runs, where the stored definition says what the state does. Where it does
// not, an update was interrupted, or somebody has changed it: then it is none of them, so that both become what is wanted,
// whatever that is.
func (m model) scaled(said, stored, drift uint) (now uint, known bool) {
	switch {
	case drift == 0 || m.isImport():
		return stored, true
	case said == stored:
		return drift, true
	}
	return 0, false
}
