package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// bootTime is the timeout for a guest's boot without KVM.
var bootTime = lab.Patience(time.Minute)

// machine is a machine of the quickstart.
type machine struct{ name, host string }

// quickstart are the example's machines.
var quickstart = []machine{{"web", "host-a"}, {"db", "host-b"}}

// demo applies the quickstart in its own lab, verifies the result, and destroys it.
func demo(ctx context.Context) (err error) {
	started := time.Now()
	program, err := findTerraform()
	if err != nil {
		return err
	}
	s, err := newDemoEnvironment(ctx)
	if s == nil {
		return err
	}
	if err == nil {
		err = s.play(ctx, program)
		if ctx.Err() != nil {
			err = context.Cause(ctx) // errors that the interruption caused are not shown
		}
	}
	if err := errors.Join(err, s.stop(ctx)); err != nil {
		return err
	}
	fmt.Printf(`
Two machines on two hosts read the same claim, and each wrote to a copy-on-write disk of its own: the master is
unchanged. A second plan changed nothing, and destroy left nothing. %.0f seconds.
`, time.Since(started).Seconds())
	return nil
}

// play performs the demo and checks that it leaves nothing on hosts and cluster.
func (s *demoEnvironment) play(ctx context.Context, program string) error {
	before, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	dir, err := s.copyQuickstart()
	if err != nil {
		return err
	}
	variables, err := s.variables()
	if err != nil {
		return err
	}
	if err := s.perform(ctx, newTerraform(program, dir, variables)); err != nil {
		return err
	}
	after, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	if left := before.Diff(after); len(left) > 0 {
		return fmt.Errorf("destroy did not put things back:\n%s", strings.Join(left, "\n"))
	}
	say("hosts and cluster are as before: nothing is left")
	return nil
}

// perform applies the quickstart, verifies the result, and destroys it.
func (s *demoEnvironment) perform(ctx context.Context, tf terraform) error {
	master, err := s.hashMaster()
	if err != nil {
		return err
	}
	say("the storage behind the claim %s/%s has the SHA-256 %.16s…", namespace, golden, master)
	if err := tf.run(ctx, "plan", "-out=quickstart.tfplan"); err != nil {
		return err
	}
	if err := tf.run(ctx, "apply", "quickstart.tfplan"); err != nil {
		return err
	}
	if err := s.verify(ctx, master); err != nil {
		return err
	}
	if err := tf.run(ctx, "plan", "-detailed-exitcode"); err != nil {
		return fmt.Errorf("a second plan must change nothing: %w", err)
	}
	return tf.run(ctx, "destroy", "-auto-approve")
}

func isLineBreak(r rune) bool { return r == '\r' || r == '\n' }

// awaitReady returns the guest's output once it has reported that it is ready.
func awaitReady(ctx context.Context, log string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTime, fmt.Errorf("the guest is not ready after %s", bootTime))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), "\nREADY") {
			return string(text), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return string(text), context.Cause(ctx)
		}
	}
}
