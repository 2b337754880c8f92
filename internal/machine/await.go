package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// leasesAgain is the interval for polling leases: libvirt has no event for them. A guest takes seconds to boot.
const leasesAgain = 2 * time.Second

// Await waits until a machine misses nothing that it may get while it runs. It returns the machine as it was observed last, and what
// that missed.
func (m Manager) Await(
	ctx context.Context, uuid string, misses func(domainxml.Machine) []string,
) (is domainxml.Machine, missing []string, err error) {
	err = m.host.AwaitEvery(ctx, leasesAgain, uuid, func(ctx context.Context) (bool, error) {
		now, at, err := m.Observe(ctx, uuid)
		if err == nil && at.live == nil {
			err = goneOff(now)
		}
		if err != nil {
			return false, err
		}
		if err = m.dropOldAddresses(ctx, &now); err != nil {
			return false, err
		}
		if is, missing = now, misses(now); len(missing) == 0 {
			return true, nil
		}
		return false, standsStill(at.state)
	})
	return is, missing, err
}

// reach adds the addresses of its interfaces to a running machine.
func (m Manager) reach(ctx context.Context, uuid string, is *domainxml.Machine) {
	is.Addresses = map[string][]string{}
	if len(is.Interfaces) == 0 {
		return
	}
	byMAC := m.host.Addresses(ctx, uuid, is.AgentConnected)
	for key, i := range is.Interfaces {
		is.Addresses[key] = byMAC[i.MAC]
	}
}

// dropOldAddresses removes the addresses whose leases are those from before the machine was booted: its guest has not asked for them yet.
// What a connected agent reports is of this run.
func (m Manager) dropOldAddresses(ctx context.Context, is *domainxml.Machine) error {
	if len(m.Leases) == 0 || is.AgentConnected {
		return nil
	}
	now, err := m.host.Leases(ctx)
	for key, addresses := range is.Addresses {
		is.Addresses[key] = slices.DeleteFunc(addresses, func(ip string) bool {
			lease := host.Lease{MAC: is.Interfaces[key].MAC, IP: ip}
			end := m.Leases[lease]
			return end != 0 && now[lease] == end
		})
	}
	return err
}

// standsStill is the error of a machine that is not worth waiting for, because its guest is paused until it is resumed.
func standsStill(state host.State) error {
	if !state.Active || state.Responsive {
		return nil
	}
	return fmt.Errorf("it is %s, and can't respond until it is resumed", state.Describe())
}

// goneOff is the error of a machine that is off while it is waited for.
func goneOff(is domainxml.Machine) error {
	switch {
	case is.RunError != "":
		return fmt.Errorf("it has gone off: its program could not be started: %s", is.RunError)
	case is.ExitCode != nil:
		return fmt.Errorf("it has gone off: its program has ended with the exit code %d%s", *is.ExitCode, LastWords(is))
	}
	return errors.New("it has gone off")
}

// LastWords are the last of what a machine's program has printed, for a sentence; empty without any.
func LastWords(is domainxml.Machine) string {
	const most = 120
	words := is.Output
	if len(words) > most {
		words = "…" + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	if words == "" {
		return ""
	}
	return fmt.Sprintf(" and the last words %q", words)
}
