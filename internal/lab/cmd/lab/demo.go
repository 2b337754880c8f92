package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
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

// scenario is one of the examples that are whole configurations.
type scenario struct {
	// prepare returns the example's variables, as environment for Terraform.
	prepare func(s *demoEnvironment, ctx context.Context) (map[string]string, error)
	// perform applies the example, verifies the result, and destroys it.
	perform func(s *demoEnvironment, ctx context.Context, tf terraform) error
	summary string
}

// defaultScenario is what make demo shows.
const defaultScenario = "quickstart"

var scenarios = map[string]scenario{
	defaultScenario: {
		prepare: func(s *demoEnvironment, _ context.Context) (map[string]string, error) { return s.variables() },
		perform: (*demoEnvironment).perform,
		summary: `Two machines on two hosts read the same claim, and each wrote to a copy-on-write disk of its own: the master is
unchanged.`,
	},
	"container-images": {
		prepare: (*demoEnvironment).prepareContainerImages,
		perform: (*demoEnvironment).performContainerImages,
		summary: `A web server and a database from unmodified container images served as machines on two hosts, and what was stored in
the database outlived its machine.`,
	},
}

// demo applies an example in its own lab, verifies the result, and destroys it.
func demo(ctx context.Context, name string) (err error) {
	shown, known := scenarios[name]
	if !known {
		return fmt.Errorf("there is no demo of %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
	}
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
		err = s.play(ctx, program, name)
		if ctx.Err() != nil {
			err = context.Cause(ctx) // errors that the interruption caused are not shown
		}
	}
	if err := errors.Join(err, s.stop(ctx)); err != nil {
		return err
	}
	fmt.Printf("\n%s A second plan changed nothing, and destroy left nothing. %.0f seconds.\n", shown.summary,
		time.Since(started).Seconds())
	return nil
}

// play performs an example and checks that it leaves nothing on hosts and cluster.
func (s *demoEnvironment) play(ctx context.Context, program, name string) error {
	shown := scenarios[name]
	variables, err := shown.prepare(s, ctx)
	if err != nil {
		return err
	}
	before, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	dir, err := s.copyExample(name)
	if err != nil {
		return err
	}
	tf := newTerraform(program, dir, variables)
	if os.Getenv(mirrorVariable) != "" {
		if err := tf.run(ctx, "init"); err != nil {
			return err
		}
	}
	if err := shown.perform(s, ctx, tf); err != nil {
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
