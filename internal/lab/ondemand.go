package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// closer is a part of a lab that is closed with it. Closing a nil pointer succeeds.
type closer interface {
	close(ctx context.Context) error
}

// onDemand is a server that starts on first use: most tests need few of those that a lab can have.
type onDemand[T closer] struct {
	mu      sync.Mutex
	running bool
	server  T
}

// get returns the server, and starts it if it does not run. A start that failed is tried again by the next call.
func (o *onDemand[T]) get(ctx context.Context, start func(context.Context) (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running {
		return o.server, nil
	}
	server, err := start(ctx)
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		var none T
		return none, errors.Join(err, server.close(undo))
	}
	o.server, o.running = server, true
	return server, nil
}

func (o *onDemand[T]) close(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.running {
		return nil
	}
	o.running = false
	return o.server.close(ctx)
}

// serverFolder creates the folder of a server, and recreates it if an earlier start has failed.
func (l *Lab) serverFolder(name string) (string, error) {
	dir := filepath.Join(l.Dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}
