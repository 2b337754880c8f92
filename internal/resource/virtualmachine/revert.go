package virtualmachine

import (
	"context"
	"errors"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// revert reverts the persistent definition after the running domain has refused a change, as far as the refusal goes, so that both change
// or neither does. An interruption is no refusal: the rest of the change shows as drift, and the next apply makes it.
func (m manager) revert(ctx context.Context, uuid string, was, want domainxml.Machine, cause error) error {
	var away *host.UnreachableError
	if ctx.Err() != nil || errors.As(cause, &away) || errors.Is(cause, host.ErrNotFound) {
		return cause
	}
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return cause
	}
	is, errIs := live.Machine()
	gains, media := live.DisksToAttach(want), live.MediaToInsert(want)
	scale, errScale := live.DiffScale(want)
	wiring, errWiring := live.DiffInterfaces(want)
	if errors.Join(errIs, errScale, errWiring) != nil {
		return cause
	}
	want = withPluggedInterfaces(was, want, wiring)
	if is.Title != want.Title {
		want.Title = was.Title
	}
	if is.Description != want.Description {
		want.Description = was.Description
	}
	if scale.VCPUs != 0 {
		want.VCPUs, want.MaxVCPUs, want.CPU = was.VCPUs, was.MaxVCPUs, was.CPU
	}
	if scale.Memory != 0 {
		want.Memory, want.MaxMemory = was.Memory, was.MaxMemory
	}
	return m.revertDisks(ctx, uuid, was, want, slices.Concat(gains, media), true, cause)
}
