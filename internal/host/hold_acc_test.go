//go:build acc

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// lock returns the XML of a domain to hold.
func lock(id string) string {
	return fmt.Sprintf(`<domain type='qemu'><name>lock</name><uuid>%s</uuid><memory unit='MiB'>16</memory><os><type>hvm</type></os></domain>`, id)
}

func TestAccHold_OneHolder(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	release, err := h.Hold(t.Context(), lock(missing()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Hold(t.Context(), lock(missing())); !errors.Is(err, host.ErrExists) {
		t.Errorf("got %v", err)
	}
	if err := release(t.Context()); err != nil {
		t.Fatal(err)
	}
	release, err = h.Hold(t.Context(), lock(missing()))
	if err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

// libvirt has one code for many failures: only a name that is in use is a held lock.
func TestAccHold_OtherFailureIsNotHeld(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	id := uuid.NewString()
	release, err := h.Hold(t.Context(), lock(id))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(lock(id), "<name>lock</name>", "<name>another</name>", 1)
	if _, err := h.Hold(t.Context(), other); err == nil || errors.Is(err, host.ErrExists) {
		t.Errorf("got %v of a UUID that is taken", err)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

// After a crash libvirtd does not know the domain's owner any more: the domain remains, and has to be ended explicitly.
func TestAccHold_SurvivesLibvirtdCrash(t *testing.T) {
	h, daemon := hostA(t, acctest.Lab(t))
	id := uuid.NewString()
	release, err := h.Hold(t.Context(), lock(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(daemon.Kill(t.Context()), daemon.Start(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
	if state, err := h.State(t.Context(), id); err != nil || !state.Active {
		t.Errorf("it is gone: %+v, %v", state, err)
	}
	if _, err := h.Hold(t.Context(), lock(missing())); !errors.Is(err, host.ErrExists) {
		t.Errorf("got %v", err)
	}
	// libvirtd may detect the end by itself when it checks its running domains.
	if err := h.StopCopier(t.Context(), id); err != nil && !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	if err := release(t.Context()); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	again, err := h.Hold(t.Context(), lock(missing()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again(t.Context()); err != nil {
		t.Error(err)
	}
}

// A reserved name is a lock without a domain that runs: it ends with the definition, or with the domain that holds it.
func TestAccReserve_UntilReleased(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	named := func(name, id string) string { return strings.Replace(lock(id), "<name>lock<", "<name>"+name+"<", 1) }
	holder, id := uuid.NewString(), uuid.NewString()
	for what, end := range map[string]func(release func(context.Context) error) error{
		"the definition": func(func(context.Context) error) error { return h.Undefine(t.Context(), id) },
		"the holder":     func(release func(context.Context) error) error { return release(t.Context()) },
	} {
		release, err := h.Hold(t.Context(), named("holder", holder))
		if err == nil {
			err = h.Reserve(t.Context(), named("reserved", id))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Reserve(t.Context(), named("reserved", missing())); !errors.Is(err, host.ErrExists) {
			t.Errorf("got %v for a name that is reserved", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- h.WaitReleased(t.Context(), id, holder) }()
		select {
		case err := <-ended:
			t.Errorf("%s: it did not wait: %v", what, err)
		case <-time.After(300 * time.Millisecond):
		}
		if err := errors.Join(end(release), <-ended); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = release(t.Context())
		_ = h.Undefine(t.Context(), id)
	}
}
