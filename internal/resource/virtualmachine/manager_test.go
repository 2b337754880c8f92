package virtualmachine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// quiet is a log that nobody reads.
var quiet = log{
	Info:     func(context.Context, string, ...map[string]any) {},
	Warn:     func(context.Context, string, ...map[string]any) {},
	Progress: func(context.Context, string, map[string]any) (stop func()) { return func() {} },
}

// busy is a host with a domain whose guest keeps running: it has no call to undefine it, and none to stop it while it runs.
type busy struct{ leftOver }

func (h *busy) Stop(context.Context, string, bool) error {
	if h.active {
		return errors.New("the guest was to go on")
	}
	return nil
}

func (h *busy) AwaitEvery(ctx context.Context, _ time.Duration, _ string, done func(context.Context) (bool, error)) error {
	if end, err := done(ctx); end || err != nil {
		return err
	}
	return cmp.Or(ctx.Err(), context.DeadlineExceeded)
}

func (h *busy) SavedXML(context.Context, string) (string, error) { return "", nil }

func (h *busy) SetAutostart(context.Context, string, bool) error { return nil }

func (h *busy) SetMemory(context.Context, string, uint, func(string) (bool, error)) error { return nil }

func (h *busy) Addresses(context.Context, string, bool) map[string][]string { return nil }

// No change undefines a machine, or stops a running one. A changed owner is that of the machine from then on.
func TestVirtualMachine_UpdateCalls(t *testing.T) {
	was := domainxml.Machine{
		Name: "web", UUID: "6c1f0b3e-0d1c-4a7f-9f25-2f7f1f5f5f5f", VCPUs: 1, MaxVCPUs: 4, Memory: 65536, MaxMemory: 131072,
		DomainType: "qemu", Type: "pc", Disks: map[string]domainxml.Disk{}, Metadata: domainxml.Metadata{Owner: "former", Phase: domainxml.Ready},
	}
	want := was
	want.Title, want.VCPUs, want.Memory, want.Autostart = "new", 2, 98304, true
	want.Boot = &domainxml.Boot{Kernel: "/vmlinuz"}
	want.RNG, want.Serial = &domainxml.RNG{}, &domainxml.Serial{}
	text, err := domainxml.Build(was)
	if err != nil {
		t.Fatal(err)
	}
	for _, active := range []bool{true, false} {
		h := &busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, active}}
		_, pending, started, err := manager{log: quiet, host: h, owner: "prod"}.change(t.Context(), was.UUID, want, power{on: active})
		if err != nil || started || active && !strings.Contains(strings.Join(pending, " "), "boot") {
			t.Errorf("active %v: pending is %v, started %v, %v", active, pending, started, err)
		}
		is, err := domainxml.Parse(h.stored)
		if err != nil || is.UUID != was.UUID || is.VCPUs != 2 || is.Boot == nil || is.RNG == nil || is.Metadata.Owner != "prod" {
			t.Errorf("active %v: stored is %+v, %v", active, is, err)
		}
	}
}

// restarting is a host whose guest shuts down, and into which nothing can be plugged.
type restarting struct {
	busy
	starts int
}

func (h *restarting) Stop(context.Context, string, bool) error {
	h.active = false
	return nil
}

func (h *restarting) Start(context.Context, string) error {
	h.starts++
	return nil
}

// More devices than there are ports change nothing, or, with allow_restart, are there after one restart.
func TestVirtualMachine_TooFewPorts(t *testing.T) {
	ports := uint(2)
	nic := func(n byte) domainxml.Interface {
		return domainxml.Interface{User: true, Model: "virtio", MAC: fmt.Sprintf("52:54:00:00:00:%02x", n)}
	}
	was := domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "q35", HotplugPorts: &ports, Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	want := was
	want.Interfaces = map[string]domainxml.Interface{"a": nic(1), "b": nic(2), "c": nic(3)}
	text, err := domainxml.Build(was)
	if err != nil {
		t.Fatal(err)
	}
	for _, restart := range []bool{false, true} {
		h := &restarting{busy: busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text, err: errors.New("no more available PCI slots")}, true}}}
		_, _, started, err := manager{log: quiet, host: h}.change(t.Context(), "", want, power{on: true, restart: restart})
		if restart && (err != nil || !started || h.starts != 1 || strings.Count(h.stored, "<interface") != 3) {
			t.Errorf("restarted %d times: %v, stored is %s", h.starts, err, h.stored)
		}
		if !restart && (!errors.Is(err, domainxml.ErrNoPort) || !strings.Contains(err.Error(), "has 2, and gets 3 more") || h.stored != text) {
			t.Errorf("got %v, stored is %s", err, h.stored)
		}
	}
}

// A machine that does not reach wait_for in time exists all the same: after an error Terraform would destroy it.
func TestVirtualMachine_WaitForTimeoutIsWarning(t *testing.T) {
	text, err := domainxml.Build(domainxml.Machine{
		Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", GuestAgent: true, Metadata: domainxml.Metadata{Phase: domainxml.Ready},
		Interfaces: map[string]domainxml.Interface{"lan": {User: true, Model: "virtio", MAC: "52:54:00:00:00:01"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := model{
		Host: types.StringValue("host-a"), Name: types.StringValue("web"), Running: types.BoolValue(true),
		WaitFor: types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
			"addresses": types.SetValueMust(types.StringType, []attr.Value{types.StringValue("lan")}),
			"agent":     types.BoolValue(true), "timeout": types.StringValue("1s"),
		}),
	}
	for name, c := range map[string]struct {
		active, interrupted bool
		want                string
	}{
		"nothing comes": {true, false, "within 1s there was no address at interface lan, no agent"}, "it is off": {false, false, "it has gone off"},
		"interrupted": {true, true, "until the interruption there was no address"},
	} {
		var diags diag.Diagnostics
		ctx, cancel := context.WithCancel(t.Context())
		if c.interrupted {
			cancel()
		}
		h := &busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, c.active}}
		m.await(ctx, manager{log: quiet, host: h}, &diags)
		cancel()
		if diags.HasError() || diags.WarningsCount() != 1 || !strings.Contains(diags[0].Detail(), c.want) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// Devices that were attached to or detached from a running machine manually are in state, and so in the next plan.
func TestVirtualMachine_ReadShowsLiveDevices(t *testing.T) {
	is := domainxml.Machine{
		Name: "web", VCPUs: 2, Memory: 131072, DomainType: "qemu", State: "paused", Metadata: domainxml.Metadata{Phase: domainxml.Ready},
	}
	var m model
	m.read(is, true)
	is.Drift = domainxml.Drift{Scale: domainxml.Scale{VCPUs: 1, Memory: 65536}}
	m.read(is, false)
	if vcpus := m.CPU.Attributes()["vcpus"]; !vcpus.Equal(types.Int64Value(1)) || m.Memory.ValueString() != "64Mi" ||
		m.Running.ValueBool() || m.State.ValueString() != "paused" {
		t.Errorf("it has %s processors and %s, runs %s, is %s", vcpus, m.Memory, m.Running, m.State)
	}
}

// If the title of the running machine or of its definition was changed, a refresh shows the changed one.
func TestVirtualMachine_ReadShowsLiveTitle(t *testing.T) {
	live, other := "web", "theirs"
	for name, c := range map[string]struct {
		stored string
		live   *string
		want   string
	}{
		"neither": {"web", nil, "web"}, "both": {"theirs", nil, "theirs"}, "the definition": {"theirs", &live, "theirs"},
		"the machine": {"web", &other, "theirs"},
	} {
		m := model{Title: types.StringValue("web")}
		is := domainxml.Machine{Title: c.stored}
		is.Drift.Title = c.live
		if readNames(&m, is); m.Title.ValueString() != c.want {
			t.Errorf("%s: it shows %s", name, m.Title)
		}
	}
}
