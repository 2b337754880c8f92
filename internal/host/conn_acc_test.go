//go:build acc

package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func isUnreachable(err error) bool {
	var u *host.UnreachableError
	return errors.As(err, &u)
}

func TestAccConn_NotFound(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	asks := map[string]func() error{
		"domain by name": func() error { _, err := h.LookupByName(t.Context(), "nobody"); return err },
		"domain by id":   func() error { _, err := h.StoredXML(t.Context(), missing()); return err },
		"secret":         func() error { _, err := h.SecretXML(t.Context(), missing()); return err },
	}
	for what, ask := range asks {
		if err := ask(); !errors.Is(err, host.ErrNotFound) || isUnreachable(err) {
			t.Errorf("%s: %v is not ErrNotFound", what, err)
		}
	}
	if err := labHost.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, ask := range asks {
		if err := ask(); !isUnreachable(err) || errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s of a host whose libvirtd is dead: %v", what, err)
		}
	}
	if err := labHost.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, ask := range asks {
		if err := ask(); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s after libvirtd came back: %v", what, err)
		}
	}
}

func TestAccConn_LibvirtdDiesDuringCall(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	if _, err := h.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
		t.Fatal(err)
	}
	if err := labHost.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := h.LookupByName(t.Context(), "nobody")
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Errorf("a frozen libvirtd answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := labHost.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !isUnreachable(err) || errors.Is(err, host.ErrNotFound) {
		t.Errorf("the call that was under way: %v", err)
	}
	if err := labHost.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAccConn_FrozenLibvirtd(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	other, err := registry(t, l).Host("host-b")
	if err != nil {
		t.Fatal(err)
	}
	if err := labHost.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := soon(t, 300*time.Millisecond)
	if _, err := h.LookupByName(ctx, "nobody"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, host.ErrNotFound) {
		t.Errorf("on the frozen host: %v", err)
	}
	if _, err := other.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("on the other host: %v", err)
	}
	if err := labHost.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("on the host that works again: %v", err)
	}
}

func TestAccConn_CallsShareOneConnection(t *testing.T) {
	l := acctest.Lab(t)
	awaitConnections(t, 0)
	h, _ := hostA(t, l)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, err := h.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	awaitConnections(t, 1)
}

func TestAccConn_CloseLeavesNothing(t *testing.T) {
	l := acctest.Lab(t)
	awaitConnections(t, 0)
	f := host.NewRegistry(map[string]host.Config{"a": {URI: l.Hosts["host-a"].URI}})
	h, err := f.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.WaitStopped(t.Context(), missing()); err != nil { // it opens the connection for events, too
		t.Fatal(err)
	}
	awaitConnections(t, 2)
	f.Close()
	awaitConnections(t, 0)
	// The goroutines that read from the connections end a moment after them.
	acctest.Eventually(t, "nothing is at work", func() error {
		if found := working(); len(found) != 0 {
			return errors.New(strings.Join(found, "\n\n"))
		}
		return nil
	})
}

// awaitConnections waits until this process has n connections to libvirt, which do not end immediately.
func awaitConnections(t *testing.T, n int) {
	t.Helper()
	for range 250 {
		if strings.Count(strings.Join(working(), ""), "socket.listen(") == n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("there are not %d connections; at work are: %s", n, strings.Join(working(), "\n\n"))
}

// working returns the goroutines that are in libvirt's library or in the package under test.
func working() (found []string) {
	stacks := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(g, "go-libvirt") || strings.Contains(g, "virtclaim/internal/host.") {
			found = append(found, g)
		}
	}
	return found
}

func TestAccConn_OneLibvirtdUnderTwoKeys(t *testing.T) {
	l := acctest.Lab(t)
	uri := l.Hosts["host-a"].URI
	f := host.NewRegistry(map[string]host.Config{"one": {URI: uri}, "two": {URI: strings.Replace(uri, "qemu:", "qemu+unix:", 1)}})
	t.Cleanup(f.Close)
	for range 2 { // the refusal persists
		one, _ := f.Host("one")
		if _, err := one.LookupByName(t.Context(), "nobody"); !errors.Is(err, host.ErrNotFound) {
			t.Error(err)
		}
		two, _ := f.Host("two")
		_, err := two.LookupByName(t.Context(), "nobody")
		if err == nil || !strings.Contains(err.Error(), "hosts one and two are the same libvirt (host host-a); remove one of them") {
			t.Errorf("the second key of a libvirtd: %v", err)
		}
	}
}
