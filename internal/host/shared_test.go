package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that ask while a list is read share the next one, and each of them sees what it has changed before.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     shared[int]
			reads int
			all   sync.WaitGroup
		)
		read := func(context.Context) (int, error) {
			reads++
			n := reads
			time.Sleep(time.Second)
			return n, nil
		}
		ask := func(want int) {
			all.Go(func() {
				if n, err := s.get(t.Context(), read); n != want || err != nil {
					t.Errorf("the list %d, %v, want the list %d", n, err, want)
				}
			})
		}
		ask(1)
		synctest.Wait()
		for range 5 {
			ask(2)
		}
		all.Wait()
		ask(3)
		all.Wait()
	})
}

// A caller waits no longer than its own context, and a list that no caller waits for is not read to its end.
func TestShared_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shared[int]
		frozen := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		longer, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for _, ctx := range []context.Context{longer, brief} {
			all.Go(func() {
				if _, err := s.get(ctx, frozen); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if n, err := s.get(t.Context(), func(context.Context) (int, error) { return 1, nil }); n != 1 || err != nil {
			t.Errorf("the next list: %d, %v", n, err)
		}
	})
}
