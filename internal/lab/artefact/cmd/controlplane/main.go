// Command controlplane builds the lab's control plane into the folder of its argument. It is a small program, so that this long build runs
// beside that of the provider.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane <cache>")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := artefact.ControlPlane(ctx, os.Args[1], func(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
