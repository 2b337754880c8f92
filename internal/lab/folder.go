package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const modulePath = "github.com/virtclaim/terraform-provider-virtclaim"

// Root is the folder of the checkout that the working directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(text, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of %s", start, modulePath)
		}
	}
}

// newRunFolder creates a private folder below state for one lab, and returns it open and locked: as long as a process has it open, the
// folder is in use. Folders of labs that were killed are removed.
func newRunFolder(ctx context.Context, state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o755); err != nil { //nolint:gosec // the folders in it are private
		return nil, err
	}
	// A folder that is not locked yet must not be mistaken for one whose lab is dead.
	all, err := os.Open(state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }()
	if err := lockExclusive(ctx, all); err != nil {
		return nil, err
	}
	if err := removeDead(state); err != nil {
		return nil, fmt.Errorf("remove what a killed lab left: %w", err)
	}
	dir, err := os.MkdirTemp(state, "run-")
	if err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return folder, lock(folder, syscall.LOCK_SH)
}

func removeDead(state string) error {
	dirs, err := filepath.Glob(filepath.Join(state, "run-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		folder, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err = lock(folder, syscall.LOCK_EX); err == nil {
			err = os.RemoveAll(dir)
		}
		_ = folder.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
	}
	return nil
}

// lockExclusive waits until it has the exclusive lock.
func lockExclusive(ctx context.Context, file *os.File) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		err := lock(file, syscall.LOCK_EX)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// lock acquires a lock or fails at once. It is released when no process has the file open any more.
func lock(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}
