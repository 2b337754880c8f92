// Command lab shows the provider against real systems on one machine.
//
//	lab up        start them, with claims to try things on, until Ctrl-C
//	lab demo      start them, apply and destroy the quickstart, prove what it did
//	lab prepare   build what they need and what is kept
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopTime bounds the end of a lab.
const stopTime = time.Minute

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

// say tells what is being done.
func say(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
