package machine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// unlock changes the password of the running domain's display. It does so before the persistent definition is written, so that the next
// apply repeats it after an interruption in between.
func (m Manager) unlock(ctx context.Context, uuid string, stored, live *domainxml.Domain,
	want domainxml.Machine,
) (*domainxml.Domain, error) {
	if want.Graphics == nil || want.Graphics.PasswordVersion == nil {
		return live, nil
	}
	display, err := live.Unlocks(stored, want)
	if err != nil || display == "" {
		return live, err
	}
	if err := m.host.ChangeDevice(ctx, uuid, display); err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}

// rename sets the title and description of the running domain, and returns it after that.
func (m Manager) rename(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	is, err := live.Machine()
	if err != nil || is.Title == want.Title && is.Description == want.Description {
		return live, err
	}
	if err := m.host.SetLiveNames(ctx, uuid, want.Title, want.Description); err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}

// scale sets the processors and the memory of the running domain to those of want, up to the running domain's maximum, and returns it
// after that.
func (m Manager) scale(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	s, err := live.DiffScale(want)
	if err != nil || s == (domainxml.Scale{}) {
		return live, err
	}
	m.log.Info(ctx, "Scaling the running machine", map[string]any{"machine": want.Name, "vcpus": s.VCPUs, "KiB": s.Memory})
	if s.VCPUs != 0 {
		if err = m.host.SetVCPUs(ctx, uuid, s.VCPUs); err == nil {
			m.putOnline(ctx, uuid, live, want)
		}
	}
	if err == nil && s.Memory != 0 {
		err = m.host.SetMemory(ctx, uuid, s.Memory, func(live string) (bool, error) { return domainxml.HasMemory(live, s.Memory) })
	}
	if err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}

// putOnline has the guest use the processors that were plugged in, which many guests do only when they are told. What fails is a warning:
// the machine has them.
func (m Manager) putOnline(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) {
	why := "No guest agent is connected."
	if is, err := live.Machine(); err == nil && is.AgentConnected {
		if err = m.host.PutOnline(ctx, uuid, want.VCPUs); err == nil {
			return
		}
		why = "Its agent did not: " + host.Answer(err) + "."
	}
	m.Warn(fmt.Sprintf("Processors of machine %s may be offline in its guest", want.Name), fmt.Sprintf("It now has %d. Those that were "+
		"plugged in are used once its guest has put them online, each by echo 1 > /sys/devices/system/cpu/cpuN/online, or with its "+
		"next start. %s", want.VCPUs, why))
}

// limit sets the limits of the running domain's disks to those of want, and returns it after that.
func (m Manager) limit(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	keys, targets := live.DisksToLimit(want)
	for _, key := range keys {
		limits := map[string]uint64{}
		for n, value := range want.Disks[key].IOTune {
			limits[domainxml.IOTuneNames[n]] = value
		}
		m.log.Info(ctx, "Limiting a disk", map[string]any{"machine": want.Name, "disk": key})
		if err := m.host.SetIOTune(ctx, uuid, targets[key], limits); err != nil {
			return nil, fmt.Errorf("disk %s could not be limited in the running machine: %w", key, err)
		}
	}
	if len(keys) == 0 {
		return live, nil
	}
	return m.readLive(ctx, uuid)
}

// ignoreChangingMemory removes the memory from drift if the guest's balloon is still changing, as it does when the guest boots.
func (m Manager) ignoreChangingMemory(ctx context.Context, uuid string, drift *domainxml.Drift) error {
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

// tune pins the processors of the running domain, and sets what is done when its guest reboots or panics, as in want. It returns the domain
// after that.
func (m Manager) tune(ctx context.Context, uuid string, live *domainxml.Domain, want domainxml.Machine) (*domainxml.Domain, error) {
	is, err := live.Machine()
	if err != nil {
		return live, err
	}
	pins := live.PinsToSet(want)
	if len(pins) == 0 && is.OnReboot == want.OnReboot && is.OnCrash == want.OnCrash {
		return live, nil
	}
	for _, n := range slices.Sorted(maps.Keys(pins)) {
		cpus, err := domainxml.CPUs(pins[n])
		if err == nil {
			err = m.host.PinVCPU(ctx, uuid, n, cpus)
		}
		if err != nil {
			return nil, err
		}
	}
	if is.OnReboot != want.OnReboot {
		err = m.host.SetAction(ctx, uuid, false, cmp.Or(want.OnReboot, domainxml.UsualOnReboot))
	}
	if is.OnCrash != want.OnCrash && err == nil {
		err = m.host.SetAction(ctx, uuid, true, cmp.Or(want.OnCrash, domainxml.UsualOnCrash))
	}
	if err != nil {
		return nil, err
	}
	return m.readLive(ctx, uuid)
}
