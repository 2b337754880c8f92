// Command lab demonstrates the provider with real systems on one machine.
//
//	lab up                start them, with claims for experiments, until Ctrl-C
//	lab demo [scenario]   start them, apply and destroy an example, the quickstart by default, verify its result
//	lab prepare           build their cached parts
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
	arguments, shown := os.Args[1:], defaultScenario
	if len(arguments) == 2 && arguments[0] == "demo" {
		arguments, shown = arguments[:1], arguments[1]
	}
	commands := map[string]func(context.Context) error{
		"up": up, "prepare": prepare, "demo": func(ctx context.Context) error { return demo(ctx, shown) },
	}
	var run func(context.Context) error
	if len(arguments) == 1 {
		run = commands[arguments[0]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: lab up|demo [scenario]|prepare")
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
