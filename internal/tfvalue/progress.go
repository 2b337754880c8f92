package tfvalue

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// progressAgain is how often it is logged what is still waited for.
const progressAgain = 10 * time.Second

// Progress logs at once, and again every few seconds until stop is called, what an operation waits for and how long it has and
// will. Terraform itself shows only that it is still at it.
func Progress(ctx context.Context, what string, fields map[string]any) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	start := time.Now()
	say := func() {
		said := maps.Clone(fields)
		said["waited"] = time.Since(start).Round(time.Second).String()
		if deadline, ok := ctx.Deadline(); ok {
			said["remaining"] = time.Until(deadline).Round(time.Second).String()
		}
		tflog.Info(ctx, what, said)
	}
	say()
	go func() {
		again := time.NewTicker(progressAgain) //nolint:forbidigo // it asks for nothing, it tells
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				say()
			}
		}
	}()
	return cancel
}
