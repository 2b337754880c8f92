package host

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// All calls are sent before the first reply has come, and the results are in order.
func TestPipelined_CallsConcurrently(t *testing.T) {
	var sent sync.WaitGroup
	sent.Add(inFlight)
	got, err := pipelined(make([]int, inFlight), func(int) (int, error) {
		sent.Done()
		sent.Wait()
		return 1, nil
	})
	if err != nil || len(got) != inFlight {
		t.Errorf("got %v, %v", got, err)
	}
	all := []int{}
	for i := range 5 * inFlight {
		all = append(all, i)
	}
	if got, err := pipelined(all, func(i int) (int, error) { return i, nil }); err != nil || !slices.Equal(got, all) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPipelined_ReturnsError(t *testing.T) {
	failed := errors.New("failed")
	if _, err := pipelined([]int{1, 2, 3}, func(i int) (int, error) {
		if i == 2 {
			return 0, failed
		}
		return i, nil
	}); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
