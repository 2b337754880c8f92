package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// bootTime is what a guest gets, without KVM, until it is ready.
const bootTime = time.Minute

// quickstart is what the example's machines have.
var quickstart = []struct{ machine, host, claim string }{
	{"web", "host-a", "data"},
	{"db", "host-b", "chap"},
}

// demo applies the quickstart in a lab of its own, proves what it did, and destroys it.
func demo(ctx context.Context) (err error) {
	started := time.Now()
	program, err := findTerraform()
	if err != nil {
		return err
	}
	s, err := setScene(ctx)
	if s == nil {
		return err
	}
	if err == nil {
		err = s.play(ctx, program)
		if ctx.Err() != nil {
			err = context.Cause(ctx) // what else it caused is of no interest
		}
	}
	if err := errors.Join(err, s.stop(ctx)); err != nil {
		return err
	}
	fmt.Printf(`
Two machines on two hosts wrote to the storage behind two Kubernetes claims, one of them with CHAP credentials out of
a Kubernetes secret. A second plan changed nothing, and destroy left nothing. %.0f seconds.
`, time.Since(started).Seconds())
	return nil
}

func (s *scene) play(ctx context.Context, program string) error {
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
	tf := newTerraform(program, dir, variables)
	if err := tf.run(ctx, "plan", "-out=quickstart.tfplan"); err != nil {
		return err
	}
	if err := tf.run(ctx, "apply", "quickstart.tfplan"); err != nil {
		return err
	}
	if err := s.proveWrites(ctx); err != nil {
		return err
	}
	if err := tf.run(ctx, "plan", "-detailed-exitcode"); err != nil {
		return fmt.Errorf("a second plan must change nothing: %w", err)
	}
	if err := tf.run(ctx, "destroy", "-auto-approve"); err != nil {
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

// proveWrites waits for the guests, shows what they say, and looks into the storage for what they wrote.
func (s *scene) proveWrites(ctx context.Context) error {
	for _, q := range quickstart {
		say("waiting until %s on %s has booted", q.machine, q.host)
		text, err := awaitReady(ctx, s.logOf(q.machine))
		for line := range strings.FieldsFuncSeq(text, isLineBreak) {
			fmt.Printf("    %s | %s\n", q.machine, line)
		}
		if err != nil {
			return fmt.Errorf("machine %s: %w", q.machine, err)
		}
		if err := proveWrite(s.luns[q.claim].Path, "written-by-"+q.machine); err != nil {
			return fmt.Errorf("the storage behind the claim %s/%s: %w", namespace, q.claim, err)
		}
		say("the storage behind the claim %s/%s has, at byte 4096: written-by-%s", namespace, q.claim, q.machine)
	}
	return nil
}

func isLineBreak(r rune) bool { return r == '\r' || r == '\n' }

func proveWrite(path, want string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	got := make([]byte, len(want))
	if _, err := file.ReadAt(got, 4096); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("it has %q at byte 4096, not %q", got, want)
	}
	return nil
}

// awaitReady gives what the guest has said when it says that it is ready.
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
