package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// quiet discards all messages.
var quiet = Log{
	Info:     func(context.Context, string, ...map[string]any) {},
	Warn:     func(context.Context, string, ...map[string]any) {},
	Progress: func(context.Context, string, map[string]any) (stop func()) { return func() {} },
}

// busy is a host with a domain whose guest keeps running: it has no call to undefine it, and none to stop it while it runs.
type busy struct{ leftOver }

func (h *busy) Stop(context.Context, string, host.Shutdown) error {
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

func (h *busy) Rename(context.Context, string, string) error     { return nil }
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
		warned := ""
		m := Manager{log: quiet, host: h, owner: "prod", Warn: func(summary, _ string) { warned += summary }}
		_, pending, started, err := m.Update(t.Context(), was.UUID, want, Power{On: active})
		if isOf := strings.Contains(warned, "offline in its guest"); isOf != active {
			t.Errorf("active %v: it warns of %q", active, warned)
		}
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

func (h *restarting) Stop(context.Context, string, host.Shutdown) error {
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
		_, _, started, err := Manager{log: quiet, host: h}.Update(t.Context(), "", want, Power{On: true, Restart: restart})
		if restart && (err != nil || !started || h.starts != 1 || strings.Count(h.stored, "<interface") != 3) {
			t.Errorf("restarted %d times: %v, stored is %s", h.starts, err, h.stored)
		}
		if !restart && (!errors.Is(err, domainxml.ErrNoPort) || !strings.Contains(err.Error(), "has 2, and gets 3 more") || h.stored != text) {
			t.Errorf("got %v, stored is %s", err, h.stored)
		}
	}
}
