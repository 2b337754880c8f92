package artefact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folder returns the absolute path of cache/name. If it is missing, fill
// creates its content, in this process or in another one that was faster: the
// folder is either missing or complete.
func folder(
	ctx context.Context, cache, name string, log func(string, ...any),
	fill func(ctx context.Context, dir string) error,
) (string, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // QEMU may run as another user
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	path := filepath.Join(cache, name)
	if exists(path) {
		return path, nil
	}
	unlock, err := lock(ctx, path+".lock", func() { log("waiting for another process that makes %s", path) })
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", path, err)
	}
	defer unlock()
	if exists(path) {
		return path, nil
	}
	if err := replace(path, func(partial string) error { return fill(ctx, partial) }); err != nil {
		return "", err
	}
	return path, nil
}

// replace has fill create a folder under a temporary name, which a killed
// process leaves behind and the next one removes, and renames it when it is
// complete.
func replace(path string, fill func(partial string) error) error {
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("clear an unfinished folder away: %w", err)
	}
	if err := os.Mkdir(partial, 0o755); err != nil { //nolint:gosec // QEMU may run as another user
		return err
	}
	if err := fill(partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return os.Rename(partial, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lock locks the file at path; the kernel releases the lock when the process
// dies. It calls busy once if it has to wait.
func lock(ctx context.Context, path string, busy func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = file.Close() }
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			unlock()
			return nil, err
		}
		if busy != nil {
			busy()
			busy = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			unlock()
			return nil, ctx.Err()
		}
	}
}
