package artefact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func writeDone(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "done"), nil, 0o644)
}

func TestFolder_ConcurrentFillsOnce(t *testing.T) {
	cache := t.TempDir()
	var fills atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			dir, err := folder(t.Context(), cache, "thing", t.Logf, func(ctx context.Context, dir string) error {
				fills.Add(1)
				return writeDone(ctx, dir)
			})
			if err != nil || !exists(filepath.Join(dir, "done")) {
				t.Errorf("folder() = %q, %v, want a complete folder", dir, err)
			}
		})
	}
	callers.Wait()
	if got := fills.Load(); got != 1 {
		t.Errorf("the folder was filled %d times, want once", got)
	}
}

func TestFolder_RemovedAfterFailure(t *testing.T) {
	cache := t.TempDir()
	broken := errors.New("broken")
	_, err := folder(t.Context(), cache, "thing", t.Logf, func(ctx context.Context, dir string) error {
		return errors.Join(writeDone(ctx, dir), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("folder() fails with %v, want %v", err, broken)
	}
	for _, name := range []string{"thing", "thing.partial"} {
		if exists(filepath.Join(cache, name)) {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestFolder_ClearsAfterKill(t *testing.T) {
	cache := t.TempDir()
	left := filepath.Join(cache, "thing.partial", "half")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := folder(t.Context(), cache, "thing", t.Logf, writeDone)
	if err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(dir, "half")) {
		t.Error("the folder has content of the killed process")
	}
}

func TestFolder_WaitEndsWithContext(t *testing.T) {
	cache := t.TempDir()
	unlock, err := lock(t.Context(), filepath.Join(cache, "thing.lock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	stopWhenItWaits := func(string, ...any) { cancel() }
	if _, err := folder(ctx, cache, "thing", stopWhenItWaits, writeDone); !errors.Is(err, context.Canceled) {
		t.Errorf("folder() fails with %v, want %v", err, context.Canceled)
	}
}
