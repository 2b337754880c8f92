//go:build acc

package reservation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// held returns the error of a conflicting writer.
func held(t *testing.T, s *environment) *reservation.HeldError {
	t.Helper()
	var e *reservation.HeldError
	if err := s.reserve(t.Context(), "writer", volume.WriteExclusive); !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	return e
}

// run runs a command from an error.
func run(t *testing.T, s *environment, e *reservation.HeldError, command string) {
	t.Helper()
	if !strings.Contains(e.Error(), "\n  "+command+"\n") {
		t.Errorf("the error does not print %s: %s", command, e)
	}
	if out, err := s.shell(t, command).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", command, err, out)
	}
}

func TestAccReservation_PrintedCommandReleases(t *testing.T) {
	own := []string{"example.com/keep", "kubernetes.io/pvc-protection"}
	s := newScene(t, "by-hand", "example.com/keep")
	check := func(finalizers ...string) {
		t.Helper()
		claim := s.now(t)
		slices.Sort(claim.Finalizers)
		if slices.Sort(finalizers); !slices.Equal(claim.Finalizers, finalizers) {
			t.Errorf("the finalizers are %v, not %v; the records are %v", claim.Finalizers, finalizers, reservation.Look(claim))
		}
	}

	s.mustReserve(t, "a", volume.ReadShared)
	e := held(t, s)
	run(t, s, e, e.Holders[0].Release)
	check(own...)

	for _, id := range []string{"a", "b"} {
		s.mustReserve(t, id, volume.ReadShared)
	}
	e = held(t, s)
	run(t, s, e, e.ReleaseAll)
	check(own...)

	for _, id := range []string{"a", "b"} {
		s.mustReserve(t, id, volume.ReadShared)
	}
	e = held(t, s)
	run(t, s, e, e.Holders[0].Release)
	check(append(own, reservation.Finalizer)...)
	run(t, s, e, e.Holders[1].Release)
	if left := reservation.Look(s.now(t)); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	s.mustReserve(t, "writer", volume.WriteExclusive)
	s.mustRelease(t, "writer")
	check(own...)
}

func TestAccReservation_OutdatedCommandIsRefused(t *testing.T) {
	s := newScene(t, "outdated")
	s.mustReserve(t, "a", volume.ReadShared)
	e := held(t, s)
	s.mustReserve(t, "b", volume.ReadShared)
	if out, err := s.shell(t, e.Holders[0].Release).CombinedOutput(); err == nil || !strings.Contains(string(out), "has been modified") {
		t.Errorf("%v: %s", err, out)
	}
	if left := reservation.Look(s.now(t)); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
	s.mustRelease(t, "a")
	s.mustRelease(t, "b")
}
