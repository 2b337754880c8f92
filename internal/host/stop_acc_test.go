//go:build acc

package host_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccWaitStopped_SeesTheEnd(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	id, neighbour := run(t, l, h, "web"), run(t, l, h, "neighbour")
	ended := wait(t, h, id)
	virsh(t, labHost, "destroy", neighbour)
	stillWaits(t, ended)
	virsh(t, labHost, "suspend", id)
	virsh(t, labHost, "resume", id)
	stillWaits(t, ended)
	virsh(t, labHost, "destroy", id)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := h.WaitStopped(t.Context(), id); err != nil {
		t.Error("of a domain that is off:", err)
	}
	if err := h.WaitStopped(t.Context(), missing()); err != nil {
		t.Error("of a domain that is gone:", err)
	}
}

func TestAccWaitStopped_SurvivesLibvirtdRestart(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	id := run(t, l, h, "web")
	ended := wait(t, h, id)
	if err := labHost.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	stillWaits(t, ended)
	if err := labHost.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stillWaits(t, ended)
	virsh(t, labHost, "destroy", id)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAccWaitStopped_ReportsUnreachable(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	if err := labHost.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.WaitStopped(soon(t, 2*time.Second), missing()); !isUnreachable(err) {
		t.Errorf("got %v", err)
	}
	if err := labHost.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wait returns the result of WaitStopped, which is listening already.
func wait(t *testing.T, h *host.Host, id string) <-chan error {
	t.Helper()
	ended, ctx := make(chan error, 1), soon(t, lab.Patience(time.Minute))
	go func() { ended <- h.WaitStopped(ctx, id) }()
	stillWaits(t, ended)
	return ended
}

func stillWaits(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestAccStop(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	obedient, log := "obedient", console(t)
	ids := map[string]string{obedient: define(t, l, h, obedient, log)}
	if err := h.Start(t.Context(), ids[obedient]); err != nil {
		t.Fatal(err)
	}
	log.Await(t, "READY")
	for _, name := range []string{"deaf", "paused"} {
		ids[name] = run(t, l, h, name)
	}
	virsh(t, labHost, "suspend", ids["paused"])
	for name, want := range map[string]string{
		"deaf":   `did not shut down in time: it ignores its power button, which was pressed [1-9]\d* times within \d+s`,
		"paused": `it is paused \(user\), so it can't act on its power button\. Go on with it \(virsh resume\)`,
	} {
		err := h.Stop(soon(t, 4*time.Second), ids[name], host.Shutdown{})
		if !errors.Is(err, host.ErrStillRunning) || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if state, err := h.State(t.Context(), ids[name]); err != nil || !state.Active {
			t.Errorf("%s is %s: %v", name, state, err)
		}
	}
	// Stop ends its wait for a guest that is paused in between.
	stopped, ctx := make(chan error, 1), soon(t, lab.Patience(time.Minute))
	go func() { stopped <- h.Stop(ctx, ids["deaf"], host.Shutdown{}) }()
	stillWaits(t, stopped)
	virsh(t, labHost, "suspend", ids["deaf"])
	if err := <-stopped; !errors.Is(err, host.ErrStillRunning) || ctx.Err() != nil {
		t.Error("of a domain that was paused meanwhile:", err)
	}
	virsh(t, labHost, "resume", ids["deaf"])
	// Only the deaf one uses up a part of its time, which is half of it.
	for name, limit := range map[string]time.Duration{obedient: lab.Patience(time.Minute), "deaf": 10 * time.Second, "paused": lab.Patience(time.Minute)} {
		if err := h.Stop(soon(t, limit), ids[name], host.Shutdown{Force: name != obedient}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if state, err := h.State(t.Context(), ids[name]); err != nil || state.Active || state.String() != "shut off" {
			t.Errorf("%s is %s: %v", name, state, err)
		}
	}
	if text := log.Text(t); !strings.Contains(text, "reboot: Power down") {
		t.Error("the guest did not power down by itself:", text)
	}
	if err := h.Stop(t.Context(), ids["deaf"], host.Shutdown{Force: true}); err != nil {
		t.Error("of a domain that is off:", err)
	}
	if err := h.Stop(t.Context(), missing(), host.Shutdown{Force: true}); !errors.Is(err, host.ErrNotFound) {
		t.Error("of a domain that is gone:", err)
	}
}

func TestAccStop_ContinuesAfterLibvirtdRestart(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	id := run(t, l, h, "deaf")
	stopped, ctx := make(chan error, 1), soon(t, lab.Patience(2*time.Minute))
	go func() { stopped <- h.Stop(ctx, id, host.Shutdown{Force: true}) }()
	stillWaits(t, stopped)
	if err := labHost.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	stillWaits(t, stopped)
	if err := labHost.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	stillWaits(t, stopped)
	virsh(t, labHost, "suspend", id) // Stop sees that on its new connection, and forces the domain off
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if state, err := h.State(t.Context(), id); err != nil || state.Active {
		t.Errorf("it is %s: %v", state, err)
	}
}
