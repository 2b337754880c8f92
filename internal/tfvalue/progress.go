package tfvalue

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// progressAgain is the interval of the log messages.
const progressAgain = 10 * time.Second

// Progress logs at once, and every few seconds until stop is called, what an operation waits for, how long it has waited, and the remaining
// time. Terraform itself only shows that the operation is running.
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
		again := time.NewTicker(progressAgain) //nolint:forbidigo // it polls nothing: it logs
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
