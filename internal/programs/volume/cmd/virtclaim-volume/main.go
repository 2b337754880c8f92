// Command virtclaim-volume fills a claim that is mounted in its pod.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // an image with nothing but this program has no certificates

	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume"
)

// version is set when the image is built.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	syscall.Umask(0o007) // pods with another user of the same group may fill the claim next
	return volume.Run(ctx, os.Args[1:], version, os.Stdout)
}
