package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// readyTime is the timeout for a server's start.
var readyTime = Patience(90 * time.Second)

// askAgain is the interval for polling it.
const askAgain = 20 * time.Millisecond

// daemon is a server that runs in a sandbox.
type daemon struct {
	sandbox *sandbox
	// log is the file of its output.
	log string
	pid string
	*command
}

// startDaemon runs a program with its files in dir.
func startDaemon(s *sandbox, dir, name, program string) *daemon {
	d := &daemon{sandbox: s, log: filepath.Join(dir, name+".log"), pid: filepath.Join(dir, name+".pid")}
	d.command = s.start(fmt.Sprintf("echo $BASHPID >%s; exec %s >>%s 2>&1", quote(d.pid), program, quote(d.log)))
	return d
}

// await waits until ready succeeds. It is an error if the daemon ends instead.
func (d *daemon) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.done:
			return fmt.Errorf("it ended at once: %w\n%s", err, lastWords(d.log))
		case <-ctx.Done():
			return fmt.Errorf("it does not get ready: %w\n%s", errors.Join(context.Cause(ctx), err), lastWords(d.log))
		}
	}
}

// end sends a signal, such as TERM, and waits until the daemon has ended. A daemon that has already ended is no error.
func (d *daemon) end(ctx context.Context, signal string) error {
	select {
	case <-d.done:
		return nil
	default:
	}
	if err := d.send(ctx, signal); err != nil {
		return err
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it does not end after SIG%s: %w", signal, context.Cause(ctx))
	}
}

// send sends a signal to a running daemon.
func (d *daemon) send(ctx context.Context, signal string) error {
	return d.sandbox.run(ctx, fmt.Sprintf("kill -%s $(cat %s)", signal, quote(d.pid)))
}
