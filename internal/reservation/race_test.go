package reservation

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const rounds = 100

// race reserves for all bindings at once, and returns the ids that got the claim.
func race(t *testing.T, bindings []Binding) (won map[string]bool) {
	t.Helper()
	claims, won := newClaims(protection), map[string]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, b := range bindings {
		group.Go(func() {
			err := Reserve(t.Context(), claims, golden, b, refusing(t))
			var held *HeldError
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won[b.ID] = true
			} else if !errors.As(err, &held) {
				t.Errorf("%s: %v", b.ID, err)
			}
		})
	}
	group.Wait()
	for _, b := range bindings {
		if held := Held(claims.claim, b.ID, b.Nonce) != ""; held != won[b.ID] {
			t.Errorf("%s won: %t, and held are %v", b.ID, won[b.ID], claims.holders())
		}
	}
	return won
}

func TestReserve_ContentionHasOneWinner(t *testing.T) {
	var bindings []Binding
	for i := range 20 {
		bindings = append(bindings, binding(fmt.Sprint("b", i), fmt.Sprint("n", i), volume.WriteExclusive))
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			if won := race(t, bindings); len(won) != 1 {
				t.Errorf("it went to %v", won)
			}
		})
	}
}

func TestReserve_ReadersOrOneWriter(t *testing.T) {
	bindings := []Binding{binding("writer", "n", volume.WriteExclusive)}
	for i := range 10 {
		bindings = append(bindings, binding(fmt.Sprint("reader", i), fmt.Sprint("n", i), volume.ReadShared))
	}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			won := race(t, bindings)
			if wrote := won["writer"]; wrote && len(won) != 1 || !wrote && len(won) != 10 {
				t.Errorf("it went to %v", won)
			}
		})
	}
}

// Bindings are reserved and released concurrently; at the end no binding holds the claim.
func TestReserve_ConcurrentReleasesLeaveNothing(t *testing.T) {
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			claims := newClaims(protection)
			var group sync.WaitGroup
			for i := range 10 {
				b := binding(fmt.Sprint("b", i), fmt.Sprint("n", i), volume.ReadShared)
				group.Go(func() {
					err := Reserve(t.Context(), claims, golden, b, refusing(t))
					if err != nil || Held(claims.snapshot(), b.ID, b.Nonce) != volume.ReadShared {
						t.Errorf("%s: %v, and held are %v", b.ID, err, claims.holders())
					}
					if err := Release(t.Context(), claims, golden, b.ID, b.Nonce, "uid-1"); err != nil {
						t.Errorf("%s: %v", b.ID, err)
					}
				})
			}
			group.Wait()
			if f := claims.claim.Finalizers; len(claims.holders()) > 0 || len(f) != 1 || f[0] != protection {
				t.Errorf("left are %v and %v", claims.holders(), f)
			}
		})
	}
}
