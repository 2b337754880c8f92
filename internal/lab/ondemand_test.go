package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// counted counts its calls of close.
type counted struct{ closed atomic.Int32 }

func (c *counted) close(context.Context) error {
	c.closed.Add(1)
	return nil
}

func TestOnDemand_StartsOnce(t *testing.T) {
	var o onDemand[*counted]
	if err := o.close(t.Context()); err != nil {
		t.Error("to stop what never ran:", err)
	}
	var starts atomic.Int32
	start := func(context.Context) (*counted, error) {
		starts.Add(1)
		return &counted{}, nil
	}
	var all errgroup.Group
	for range 10 {
		all.Go(func() error {
			_, err := o.get(t.Context(), start)
			return err
		})
	}
	if err := all.Wait(); err != nil || starts.Load() != 1 {
		t.Errorf("%d starts, %v", starts.Load(), err)
	}
	server, _ := o.get(t.Context(), start)
	for range 2 {
		if err := o.close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := server.closed.Load(); n != 1 {
		t.Errorf("it was closed %d times", n)
	}
}

func TestOnDemand_FailedStartIsRetried(t *testing.T) {
	var o onDemand[*counted]
	half, broken := &counted{}, errors.New("broken")
	if _, err := o.get(t.Context(), func(context.Context) (*counted, error) { return half, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if n := half.closed.Load(); n != 1 {
		t.Errorf("what had started was closed %d times", n)
	}
	whole := &counted{}
	got, err := o.get(t.Context(), func(context.Context) (*counted, error) { return whole, nil })
	if err != nil || got != whole {
		t.Errorf("the next gets %v, %v", got, err)
	}
}
