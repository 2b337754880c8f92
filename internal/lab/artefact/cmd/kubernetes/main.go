// Command kubernetes builds the lab's control plane or its kubelet into a cache folder. It is a small program, so that this long build
// runs beside that of the provider.
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
	builds := map[string]func(context.Context, string, func(string, ...any)) (string, error){
		"controlplane": artefact.ControlPlane, "kubelet": artefact.Kubelet,
	}
	if len(os.Args) != 3 || builds[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubernetes controlplane|kubelet <cache>")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := builds[os.Args[1]](ctx, os.Args[2], func(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
