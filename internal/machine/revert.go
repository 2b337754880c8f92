package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// revert reverts the persistent definition after the running domain has refused a change, as far as the refusal goes, so that both change
// or neither does. An interruption is no refusal: the rest of the change shows as drift, and the next apply makes it.
func (m Manager) revert(ctx context.Context, uuid string, was, want domainxml.Machine, cause error) error {
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
	want = withPresentLimits(was, want, live)
	if is.Title != want.Title {
		want.Title = was.Title
	}
	if is.Description != want.Description {
		want.Description = was.Description
	}
	if scale.VCPUs != 0 {
		want.VCPUs, want.MaxVCPUs, want.CPU = was.VCPUs, was.MaxVCPUs, was.CPU
	}
	if len(live.PinsToSet(want)) > 0 {
		want.CPU.Pins = was.CPU.Pins
	}
	if is.OnReboot != want.OnReboot {
		want.OnReboot = was.OnReboot
	}
	if is.OnCrash != want.OnCrash {
		want.OnCrash = was.OnCrash
	}
	if scale.Memory != 0 {
		want.Memory, want.MaxMemory = was.Memory, was.MaxMemory
	}
	return m.revertDisks(ctx, uuid, was, want, slices.Concat(gains, media), true, cause)
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

// withPresentLimits is want with the limits of was where the running domain does not have the wanted ones.
func withPresentLimits(was, want domainxml.Machine, live *domainxml.Domain) domainxml.Machine {
	keys, _ := live.DisksToLimit(want)
	want.Disks = maps.Clone(want.Disks)
	for _, key := range keys {
		disk := want.Disks[key]
		disk.IOTune = was.Disks[key].IOTune
		want.Disks[key] = disk
	}
	return want
}

// revertDisks removes disks that the machine may not use from its stored definition, so that no other machine waits for it. It does so
// also after the operation's timeout.
func (m Manager) revertDisks(ctx context.Context, uuid string, was, want domainxml.Machine, keys []string, active bool, cause error) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	runs := func(string) bool { return false }
	if active {
		if live, err := m.readLive(ctx, uuid); err == nil { // if the host does not answer, storing the definition fails, too
			runs = live.HasDisk
		}
	}
	disks := maps.Clone(want.Disks)
	for _, key := range keys {
		before, had := was.Disks[key]
		switch {
		case had && len(before.Volume.Images) > 0 && !before.Another(want.Disks[key]):
			disks[key] = before
		case had && len(before.Volume.Images) == 0 && runs(key):
			// The guard admitted it earlier, and an apply that changed it was killed: the guest still has it.
			disk := want.Disks[key]
			disk.Tentative = true
			disks[key] = disk
		case domainxml.IsDrive(want.Disks[key].Device):
			// The drive stays, empty: a domain defined outside of Terraform had it before.
			disk := want.Disks[key]
			disk.Volume = volume.Volume{}
			disks[key] = disk
		default:
			// A former volume is not stored again, because another machine may have it by now. Nor is one that was never admitted.
			delete(disks, key)
		}
	}
	want.Disks = disks
	if err := m.redefine(ctx, uuid, want); err != nil {
		return fmt.Errorf("%w\n\nLeft behind: the stored definition has what was refused already, and could not be put back: %w", cause,
			err)
	}
	return cause
}
