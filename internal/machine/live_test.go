package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// ballooning is a host whose domain has another live definition a moment later.
type ballooning struct {
	busy
	later string
}

func (h *ballooning) MemoryChanges(_ context.Context, _ string, other func(string) (bool, error)) (bool, error) {
	return other(h.later)
}

// While a guest boots, its balloon takes the memory that it does not have; no other change is shown then, and none is pending.
func TestScale_ChangingBalloonIsNotDrift(t *testing.T) {
	is := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 1 << 20, MaxMemory: 4 << 20, DomainType: "qemu", Type: "pc", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	with := func(mebibytes uint) string {
		m := is
		m.Memory = mebibytes << 10
		text, err := domainxml.Build(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct{ live, later, want uint }{
		"it changes": {2380, 2000, 0}, "it is there": {2380, 1024, 0}, "it stays": {2380, 2380, 2380 << 10}, "it is taken more": {512, 512, 512 << 10},
	} {
		h := &ballooning{busy{leftOver{stubborn{oneDomain: oneDomain{stored: with(1024)}, live: with(c.live)}, true}}, with(c.later)}
		m := Manager{log: quiet, host: h}
		got, _, err := m.Observe(t.Context(), "")
		if err == nil {
			err = m.ignoreChangingMemory(t.Context(), "", &got.Drift)
		}
		if err != nil || got.Drift.Memory != c.want || len(got.Pending) != 0 {
			t.Errorf("%s: %d KiB drifted and %v is pending, %v", name, got.Drift.Memory, got.Pending, err)
		}
	}
}

// tunable is a running domain, and notes what is set in it.
type tunable struct {
	busy
	set []string
}

func (h *tunable) PinVCPU(_ context.Context, _ string, vcpu uint, cpus map[uint]bool) error {
	h.set = append(h.set, fmt.Sprint(vcpu, cpus))
	return nil
}

func (h *tunable) SetAction(_ context.Context, _ string, panics bool, action string) error {
	h.set = append(h.set, fmt.Sprint(panics, action))
	return nil
}

// Only what differs is set in the running domain; a processor that it does not have yet is pinned when it starts.
func TestTune_SetsWhatDiffers(t *testing.T) {
	is := domainxml.Machine{
		Name: "web", VCPUs: 2, MaxVCPUs: 4, Memory: 1 << 20, DomainType: "qemu", Type: "pc", OnReboot: "destroy",
		CPU: domainxml.CPU{Pins: map[uint]string{0: "1-2"}},
	}
	text, err := domainxml.Build(is)
	if err != nil {
		t.Fatal(err)
	}
	live, err := domainxml.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := is
	want.OnReboot, want.OnCrash = "", "preserve"
	want.CPU.Pins = map[uint]string{0: "1,2", 1: "3", 3: "3"}
	for _, c := range []struct {
		want domainxml.Machine
		set  []string
	}{{is, nil}, {want, []string{"1 map[3:true]", "falserestart", "truepreserve"}}} {
		h := &tunable{busy: busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, true}}}
		m := Manager{log: quiet, host: h}
		if _, err := m.tune(t.Context(), "", live, c.want); err != nil || !slices.Equal(h.set, c.set) {
			t.Errorf("set is %q, %v", h.set, err)
		}
	}
}

// hotplugging is a running domain whose agent answers with err, and notes how many processors it is to put online.
type hotplugging struct {
	busy
	online uint
	err    error
}

func (h *hotplugging) PutOnline(_ context.Context, _ string, n uint) error {
	h.online = n
	return h.err
}

// A processor that was plugged in is put online by a connected agent; otherwise a warning tells how.
func TestScale_PutsProcessorsOnline(t *testing.T) {
	for name, c := range map[string]struct {
		state  string
		err    error
		vcpus  uint
		online uint
		warns  []string
	}{
		"by the agent":           {state: "connected", vcpus: 2, online: 2},
		"the agent refuses":      {state: "connected", vcpus: 2, online: 2, err: errors.New("no \x1b"), warns: []string{"/cpuN/online", `did not: "no \x1b"`}},
		"no agent at the port":   {state: "disconnected", vcpus: 2, warns: []string{"It now has 2", "/cpuN/online", "No guest agent"}},
		"the number is the same": {state: "connected", vcpus: 1},
	} {
		is := domainxml.Machine{
			Name: "web", VCPUs: 1, MaxVCPUs: 4, Memory: 1 << 20, DomainType: "qemu", Type: "pc", GuestAgent: true,
			Metadata: domainxml.Metadata{Phase: domainxml.Ready},
		}
		text, err := domainxml.Build(is)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, `name="org.qemu.guest_agent.0"`, `name="org.qemu.guest_agent.0" state="`+c.state+`"`, 1)
		h := &hotplugging{busy: busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, true}}, err: c.err}
		warned, want := "", is
		want.VCPUs = c.vcpus
		m := Manager{log: quiet, host: h, Warn: func(_, detail string) { warned += detail }}
		live, err := domainxml.Read(text)
		if err == nil {
			_, err = m.scale(t.Context(), "", live, want)
		}
		if err != nil || h.online != c.online || (warned == "") != (c.warns == nil) || len(warned) > 300 {
			t.Errorf("%s: %d are put online, and it warns of %q, %v", name, h.online, warned, err)
		}
		for _, part := range c.warns {
			if !strings.Contains(warned, part) {
				t.Errorf("%s: it warns of %q, without %q", name, warned, part)
			}
		}
	}
}
