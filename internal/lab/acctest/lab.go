package acctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// starts is how often the start of a lab is tried: on a busy machine a port may be taken meanwhile.
const starts = 3

// current is the lab of the test binary, which is nil before the first test that needs one and after a failed one.
var current struct {
	sync.Mutex
	*lab.Lab
	// users are the tests that use it: one and its subtests.
	users int
	// done ends on Ctrl-C.
	done context.Context
}

// Main is a package's TestMain: it stops the lab after the tests, also on Ctrl-C.
func Main(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	current.done = ctx
	_ = os.Setenv("TF_ACC", "1") // terraform-plugin-testing would skip the tests that the build constraint acc has selected already
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	code := 1
	select {
	case code = <-done:
	case <-ctx.Done():
	}
	stop()
	if err := stopLab(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Lab is the package's lab. At the end of the test the objects on hosts and cluster must be the same as before. After a failed test there
// is a new lab for the next one, which would fail by what that one has left.
func Lab(t testing.TB) *lab.Lab {
	t.Helper()
	l, err := useLab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := releaseLab(t.Failed()); err != nil {
			t.Error(err)
		}
	})
	before, err := l.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after, err := l.Snapshot(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
			return
		}
		for _, line := range before.Diff(after) {
			t.Error("leak:", line)
		}
	})
	return l
}

func useLab() (*lab.Lab, error) {
	current.Lock()
	defer current.Unlock()
	var errs []error
	for try := 0; current.Lab == nil && try < starts; try++ {
		l, err := lab.Start(current.done, lab.Options{Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "lab: "+format+"\n", args...)
		}})
		current.Lab = l
		errs = append(errs, err)
	}
	if current.Lab == nil {
		return nil, fmt.Errorf("start the lab: %w", errors.Join(errs...))
	}
	current.users++
	return current.Lab, nil
}

func releaseLab(failed bool) error {
	current.Lock()
	current.users--
	stop := failed && current.users == 0
	current.Unlock()
	if !stop {
		return nil
	}
	return stopLab()
}

func stopLab() error {
	current.Lock()
	defer current.Unlock()
	if current.Lab == nil {
		return nil
	}
	err := current.Stop(context.Background())
	current.Lab = nil
	if err != nil {
		return fmt.Errorf("stop the lab: %w", err)
	}
	return nil
}
