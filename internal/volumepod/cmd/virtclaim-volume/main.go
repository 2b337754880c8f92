// Command virtclaim-volume fills a claim that is mounted in its pod.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volumepod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	os.Exit(volumepod.Run(ctx, os.Args[1:], os.Stdout))
}
