// Command lab demonstrates the provider with real systems on one machine.
//
//	lab up        start them, with claims for experiments, until Ctrl-C
//	lab demo      start them, apply and destroy the quickstart, verify its result
//	lab prepare   build their cached parts
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// stopTime is the timeout for stopping a lab.
var stopTime = lab.Patience(time.Minute)

func main() {
	commands := map[string]func(context.Context) error{"up": up, "demo": demo, "prepare": prepare}
	var run func(context.Context) error
	if len(os.Args) == 2 {
		run = commands[os.Args[1]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: lab up|demo|prepare")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// say prints the present step.
func say(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
